#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest in the wheel: pytest --cuda-soft and its like, from an environment with the wheel, pytest and pytest-xdist from PyPI.

usage: test_wheel_pytest.py --packages DIR
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import wheel

arguments = None
venv = None
REFUSED = r'''
import ctypes
PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry bad() { wgmma.fence.sync.aligned; ret; }
\0"""
def driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    assert cuda.cuInit(0) == 0
    return cuda
def test_kernel():
    cuda = driver()
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"bad") == 218
def test_call():
    assert driver().cuCoredumpSetAttribute(1, ctypes.byref(ctypes.c_bool(True)), ctypes.byref(ctypes.c_size_t(1))) == 801
'''
CALL = "a core dump of the GPU is not supported"
KERNEL = "kernel bad cannot run: ptx:4: instruction 'wgmma' is not supported"
COUNT = r'''
import ctypes
def count():
    cuda, n, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 and cuda.cuDeviceTotalMem_v2(ctypes.byref(size), 0) == 0
    return n.value, size.value
'''


class Plugin(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ckt-pytest-")
        self.addCleanup(temporary.cleanup)
        self.dir = temporary.name
        self.tmp = os.path.join(self.dir, "tmp")
        os.mkdir(self.tmp)

    def tearDown(self):
        """No private server's directory and no file of refusals stays."""
        self.assertEqual([n for n in os.listdir(self.tmp) if "cricket" in n], [])

    def write(self, text, name="test_it.py"):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def pytest(self, *words, module=True, **variables):
        start = [os.path.join(venv, "bin", "python"), "-m", "pytest"] if module else [os.path.join(venv, "bin", "pytest")]
        return wheel.run(*start, *words, cwd=self.dir, TMPDIR=self.tmp, XDG_RUNTIME_DIR=self.tmp, **variables)

    def test_off(self):
        """Without an option nothing is imported, set or registered."""
        self.write("import os, sys\n"
                   "def test(pytestconfig):\n"
                   "    assert 'LD_PRELOAD' not in os.environ and not [n for n in os.environ if 'CRICKET' in n]\n"
                   "    assert 'cricket_gpu.devices' not in sys.modules and not pytestconfig.pluginmanager.hasplugin('cricket_gpu_run')\n")
        status, text = self.pytest()
        self.assertEqual(status, 0, text)
        self.assertNotIn("cricket:", text)

    def test_refused(self):
        """What was refused is in the summary, once, with its test; no test fails by it, and one that captures nothing shows it too."""
        self.write(REFUSED)
        for words in ((), ("-s",), ("-q", "-p", "no:cacheprovider")):
            status, text = self.pytest("--cuda-soft", *words)
            self.assertEqual(status, 0, text)
            summary = text[text.index("cricket: 2 refused or not executed"):]
            self.assertEqual([summary.count(CALL), summary.count(KERNEL)], [1, 1], text)
            self.assertIn("[first in test_it.py::test_kernel]", summary)

    def test_nothing_refused(self):
        self.write("def test():\n    pass\n")
        status, text = self.pytest("--cuda-soft", module=False)
        self.assertEqual((status, "soft GPU: nothing was refused" in text), (0, True), text)

    def test_devices(self):
        self.write(COUNT + "def test():\n    assert count() == (2, 4 << 30)\n")
        self.assertEqual(self.pytest("--cuda-soft-devices", "2x9.0:4G")[0], 0)
        self.assertEqual(self.pytest("--cuda-soft")[0], 1)
        self.assertEqual(self.pytest(PYTEST_ADDOPTS="--cuda-soft-devices=2x9.0:4G")[0], 0)
        self.write("[pytest]\naddopts = --cuda-soft-devices 2x9.0:4G\n", "pytest.ini")
        self.assertEqual(self.pytest(module=False)[0], 0)

    def test_workers(self):
        """pytest-xdist's workers have the same GPU, and what they refuse is in the one summary."""
        self.write(REFUSED + COUNT + "import pytest, os\n@pytest.mark.parametrize('n', range(8))\ndef test_n(n):\n    assert count() == (2, 1 << 30)\n")
        self.write("import os\nopen(os.environ.get('PYTEST_XDIST_WORKER', 'controller'), 'w').close()\n", "conftest.py")
        status, text = self.pytest("--cuda-soft-devices", "2x9.0:1G", "-n", "2")
        self.assertEqual(status, 0, text)
        self.assertEqual((text.count(CALL), text.count(KERNEL)), (1, 1), text)
        self.assertTrue({"gw0", "gw1"} <= set(os.listdir(self.dir)))

    def test_once(self):
        """The process starts again once: cricket-run is an ancestor once, also of a pytest that a test starts."""
        inner = "import os\ndef test():\n    open('said', 'w').write(os.environ['LD_PRELOAD'] + '\\n' + os.environ['REMOTE_GPU_ADDRESS'])\n"
        self.write(inner, "inner/test_inner.py")
        self.write("import os, subprocess, sys\ndef test():\n"
                   "    open('outer', 'w').write(os.environ['LD_PRELOAD'] + '\\n' + os.environ['REMOTE_GPU_ADDRESS'])\n"
                   "    assert subprocess.run([sys.executable, '-m', 'pytest', '--cuda-soft', 'inner']).returncode == 0\n")
        status, text = self.pytest("--cuda-soft", "test_it.py")
        self.assertEqual(status, 0, text)
        with open(os.path.join(self.dir, "outer"), encoding="utf-8") as outer, open(os.path.join(self.dir, "said"), encoding="utf-8") as file:
            said = outer.read()
            self.assertEqual(said, file.read())
        self.assertEqual(said.count("libcricket-client.so"), 1)

    def test_arguments(self):
        """Every argument arrives as it was, whatever it holds, and the interpreter's flags too."""
        self.write("import json, os, sys\ndef test():\n    json.dump([sys.argv[1:], sys.flags.optimize, sys.flags.dev_mode, os.getcwd()], open('said', 'w'))\n")
        words = ["--cuda-soft", "-k", "test  and not (a or b)", "--rootdir", self.dir, "-o", "cache_dir=$(touch x);`touch y`", "-p", "no:randomly", "--", "test_it.py"]
        status, text = wheel.run(os.path.join(venv, "bin", "python"), "-O", "-X", "dev", "-m", "pytest", *words, cwd=self.dir, TMPDIR=self.tmp, XDG_RUNTIME_DIR=self.tmp)
        self.assertEqual(status, 0, text)
        with open(os.path.join(self.dir, "said"), encoding="utf-8") as f:
            self.assertEqual(json.load(f), [words, 1, True, self.dir])
        self.assertFalse(os.path.exists(os.path.join(self.dir, "x")))

    def test_status(self):
        for body, expected in (("assert True", 0),
                                ("assert False", 1), ("import pytest; pytest.exit('enough', 7)", 7), ("import os; os._exit(33)", 33), ("import os; os.kill(os.getpid(), 9)", 137)):
            self.write(f"def test():\n    {body}\n")
            status, text = self.pytest("--cuda-soft")
            self.assertEqual(status, expected, text)
            # What a killed process could not remove: the file of refusals alone.
            for name in os.listdir(self.tmp):
                if name.startswith("cricket-refusals-") and expected in (33, 137):
                    os.unlink(os.path.join(self.tmp, name))
        self.assertEqual(self.pytest("--cuda-soft", "nowhere.py")[0], 4)
        self.assertEqual(self.pytest("--cuda-soft", "-k", "nothing")[0], 5)
        self.assertEqual(self.pytest("--cuda-soft", "--help")[0], 0)

    def test_signal(self):
        """SIGINT to the process ends the tests as without us: status 2 and a summary."""
        self.write("import time\ndef test():\n    open('begun', 'w').close()\n    time.sleep(60)\n")
        process = subprocess.Popen([os.path.join(venv, "bin", "python"), "-m", "pytest", "--cuda-soft"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**wheel.CLEAN, "TMPDIR": self.tmp, "XDG_RUNTIME_DIR": self.tmp})
        while not os.path.exists(os.path.join(self.dir, "begun")):
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=60)[0]
        self.assertEqual((process.returncode, "KeyboardInterrupt" in text), (2, True), text)

    def test_conftest(self):
        """The process is under Cricket before any conftest.py is imported."""
        self.write("import ctypes, os\nassert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\nopen('seen', 'a').write('x')\n", "conftest.py")
        self.write("def test():\n    pass\n")
        status, text = self.pytest("--cuda-soft")
        self.assertEqual(status, 0, text)
        with open(os.path.join(self.dir, "seen"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "x")

    def test_remote(self):
        """A server's GPU; one that does not answer fails the tests, and says why."""
        address = os.path.join(self.dir, "socket")
        self.write(REFUSED)
        server = subprocess.Popen([os.path.join(venv, "bin", "cricket-server"), "--driver", "soft", "--socket", address, "--listen", "none"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=wheel.CLEAN)
        try:
            for _ in range(1500):
                if os.path.exists(address):
                    break
                time.sleep(0.02)
            status, text = self.pytest("--cuda-remote", "unix:" + address)
            self.assertEqual((status, CALL in text, KERNEL in text, "server unix:" in text), (0, True, True, True), text)
        finally:
            server.terminate()
            server.wait(timeout=30)
        status, text = self.pytest("--cuda-remote", "unix:" + address)
        self.assertEqual((status, "no GPU" in text), (1, True), text)

    def test_wrong_options(self):
        self.write("def test():\n    open('ran', 'w').close()\n")
        for words, said in ((["--cuda-soft-devices", "0x"], "'0x' is not [COUNTx]CAPABILITY"), (["--cuda-soft-devices", ""], "is not [COUNTx]CAPABILITY"),
                            (["--cuda-soft-devices", "999x9.0"], "asks for 999 devices"), (["--cuda-soft-devices", "9.0:1K"], "16M to 16T"),
                            (["--cuda-soft-devices", "3.5"], "no capability 3.5"), (["--cuda-remote"], "expected one argument"),
                            (["--cuda-remote="], "not an address"), (["--cuda-remote=--soft"], "not an address"), (["--cuda-remote", "a b"], "not an address"),
                            (["--cuda-remote=a\nb"], "not an address"), (["--cuda-soft", "--cuda-remote", "x"], "exclude each other"),
                            (["--cuda-remote", "x", "--cuda-soft-devices", "9.0"], "exclude each other")):
            status, text = self.pytest(*words)
            self.assertEqual((status, said in text, "Traceback" in text), (4, True, False), text)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "ran")))
        # Not ours without the plugin.
        self.assertEqual(self.pytest("--cuda-soft", "-p", "no:cricket_gpu")[0], 4)

    def test_space(self):
        spaced = self.write("", "a b/libcricket-client.so")
        self.write("def test():\n    pass\n")
        status, text = self.pytest("--cuda-soft", CRICKET_LIBDIR=os.path.dirname(spaced))
        self.assertEqual((status, "LD_PRELOAD cannot hold" in text), (4, True), text)

    def test_called(self):
        """A program that calls pytest.main() is not started again: it may have done something before."""
        program = self.write("import sys, pytest\nsys.exit(pytest.main(['--cuda-soft', '.']))\n", "program.py")
        self.write("def test():\n    pass\n")
        status, text = wheel.run(os.path.join(venv, "bin", "python"), program, cwd=self.dir, TMPDIR=self.tmp)
        self.assertEqual((status, "start it with cricket-run" in text), (4, True), text)

    def test_hostile_lines(self):
        """A peer's text in the summary: no control characters, a bound on lines and lengths."""
        refusals = self.write("cricket soft GPU: before\n", "refusals")
        self.write("import os\ndef test():\n    with open(os.environ['CRICKET_REFUSALS'], 'ab') as f:\n"
                   "        f.write(b'\\x1b[2J\\xff' + b'z' * 5000 + b'\\n' + b''.join(b'line %d\\n' % n for n in range(1000)) + b'no end')\n")
        status, text = self.pytest("--cuda-soft", CRICKET_REFUSALS=refusals)
        self.assertEqual(status, 0, text)
        self.assertIn("1001 refused or not executed", text)
        self.assertIn("and 801 more", text)
        self.assertNotIn("\x1b[2J", text)
        self.assertNotIn("before", text)
        self.assertNotIn("z" * 400, text)
        # The user's own file stays.
        self.assertTrue(os.path.exists(refusals))


def main():
    global arguments, venv
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    arguments, rest = parser.parse_known_args()
    path = wheel.find(arguments.packages)
    with tempfile.TemporaryDirectory(prefix="ckt-wheel-") as directory:
        try:
            venv = wheel.make_venv(os.path.join(directory, "venv"), path, "pytest", "pytest-xdist")
        except OSError as error:
            print(f"pytest is not to be had from PyPI: {error}")
            return wheel.SKIP
        return not unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
