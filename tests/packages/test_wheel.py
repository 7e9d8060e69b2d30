#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel cricket-gpu: its contents, how it installs and leaves, and what its programs say.

usage: test_wheel.py --packages DIR --tree DIR --cuda DIR
"""

import argparse
import ast
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import wheel

arguments = None
path = None
INIT = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
MAKE = os.path.join(wheel.TOP, "packaging", "wheel", "make_wheel.py")
PACKAGE = os.path.join(wheel.TOP, "packaging", "wheel", "cricket_gpu")
sys.path.insert(0, PACKAGE)
import devices    # noqa: E402


def make(out, tree, **variables):
    """make_wheel.py as packaging/wheel/build calls it; (status, text)"""
    with tempfile.TemporaryDirectory() as stubs:
        return wheel.run(sys.executable, MAKE, "--tree", tree, "--package", PACKAGE, "--license", os.path.join(wheel.TOP, "LICENSE"),
                         "--readme", os.path.join(wheel.TOP, "docs", "python.md"), "--version", "0.1.0", "--stubs", stubs, "--out", out, **variables)


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zip = zipfile.ZipFile(path)

    @classmethod
    def tearDownClass(cls):
        cls.zip.close()

    def test_name_and_size(self):
        self.assertRegex(os.path.basename(path), r"^cricket_gpu-[0-9.]+-py3-none-manylinux_2_34_x86_64\.whl$")
        self.assertLessEqual(os.path.getsize(path), 25 << 20)

    def test_record(self):
        """RECORD names every file with its hash, and no other."""
        name = next(n for n in self.zip.namelist() if n.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(self.zip.read(name).decode())))
        self.assertEqual(sorted(row[0] for row in rows), sorted(self.zip.namelist()))
        for file, digest, size in rows:
            if file != name:
                content = self.zip.read(file)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode())
                self.assertEqual(int(size), len(content))

    def test_order_and_modes(self):
        entries = self.zip.infolist()
        first = [e.filename for e in entries if ".dist-info/" not in e.filename]
        self.assertEqual(first, sorted(first))
        self.assertEqual({e.external_attr >> 16 for e in entries}, {0o100644, 0o100755})
        self.assertEqual(len({e.date_time for e in entries}), 1)

    def test_what_must_be_in_it(self):
        names = "\n".join(self.zip.namelist())
        for part in ("scripts/cricket-run", "scripts/cricketctl", "scripts/cricket-server", "gpu/lib/cricket/libcuda.so.1", "gpu/libexec/cricket/cricket-worker",
                     "gpu/libexec/cricket/soft/libcuda.so.1", "gpu/share/man/man1/cricket-run.1", "share/doc/cricket/OpenBLAS.copyright", "dist-info/LICENSE"):
            self.assertIn(part, names)
        self.assertNotIn("systemd/system/", names)

    def test_stubs(self):
        """libcuda.so is no second copy of the driver."""
        for name in self.zip.namelist():
            if name.endswith(".so") and "/lib/cricket/libcu" in name:
                self.assertLess(self.zip.getinfo(name).file_size, 20000)

    def test_same_bytes(self):
        """From a tree with other times, order and umask."""
        with tempfile.TemporaryDirectory() as out:
            tree = os.path.join(out, "tree")
            shutil.copytree(arguments.tree, tree, symlinks=True)
            subprocess.run(["find", tree, "-exec", "touch", "-h", "-d", "2001-02-03", "{}", "+"], check=True)
            subprocess.run(["find", tree, "-type", "f", "-exec", "chmod", "g-r,o-rx", "{}", "+"], check=True)
            wheels = []
            for number, place in enumerate((arguments.tree, tree)):
                directory = os.path.join(out, str(number))
                os.mkdir(directory)
                status, text = make(directory, place, SOURCE_DATE_EPOCH="1700000000", TZ=("UTC", "Asia/Tokyo")[number])
                self.assertEqual(status, 0, text)
                with open(os.path.join(directory, os.listdir(directory)[0]), "rb") as f:
                    wheels.append(hashlib.sha256(f.read()).hexdigest())
            self.assertEqual(*wheels)

    def test_nothing_of_nvidias(self):
        """A genuine header or library in the tree stops the build, whatever its name."""
        genuine = [file for file in (os.path.join(arguments.cuda, name) for name in ("include/cuda.h", "include/cuda_fp16.h", "lib64/libcudart.so.13", "lib64/libcudart_static.a"))
                   if os.path.exists(file)]
        if not genuine:
            self.skipTest("no CUDA toolkit here")
        for file in genuine:
            with tempfile.TemporaryDirectory() as tree:
                os.makedirs(os.path.join(tree, "share"))
                shutil.copy(file, os.path.join(tree, "share", "notes.txt"))
                status, text = make(tree, tree)
                self.assertEqual((status, "must not be in the wheel" in text), (1, True), file)
                self.assertEqual([n for n in os.listdir(tree) if n.endswith(".whl")], [])

    def test_too_big(self):
        with tempfile.TemporaryDirectory() as tree:
            os.makedirs(os.path.join(tree, "share"))
            with open(os.path.join(tree, "share", "noise"), "wb") as f:
                f.write(base64.b64encode(os.urandom(28 << 20)))
            status, text = make(tree, tree)
            self.assertEqual((status, "are allowed" in text), (1, True))
            self.assertEqual([n for n in os.listdir(tree) if n.endswith((".whl", ".new"))], [])


class Devices(unittest.TestCase):
    def test_good(self):
        for text, value in (("2x9.0:4G", "9.0:4G,9.0:4G"), ("12.0", "12.0"), ("1x7.5:512M,8.0", "7.5:512M,8.0")):
            self.assertEqual(devices.parse(text), value)

    def test_bad(self):
        for text in ("", "0x", "0x9.0", "x9.0", "9", "9.0:", "9.0:4X", "9.0:0G", "9.0:1M", "9.0:99T", "65x9.0", "64x9.0,9.0", "99999999999x9.0", "9.0,", ",", "5.0", "9.0:4G\n",
                     "9.0 ", "-1x9.0", "٢x9.0", "9.0:4G;x", "2x9.0:4G:1G:1G", "9.0:" + 99 * "9"):
            with self.assertRaises(ValueError, msg=text) as error:
                devices.parse(text)
            self.assertNotIn("\n", str(error.exception).replace(text[:40], ""))

    def test_same_as_the_soft_gpu(self):
        with open(os.path.join(wheel.TOP, "softgpu", "context", "device.c"), encoding="utf-8") as f:
            table = re.search(r"archs\[\] = \{(.*?)\};", f.read(), re.DOTALL)[1]
        self.assertEqual(list(devices.CAPABILITIES), [f"{int(n) // 10}.{int(n) % 10}" for n in re.findall(r"\{(\d+),", table)])
        with open(os.path.join(wheel.TOP, "rpc", "session.x"), encoding="utf-8") as f:
            self.assertEqual(devices.DEVICES_MAX, int(re.search(r"CKT_DEVICES_MAX = (\d+)", f.read())[1]))


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="ckt-wheel-")
        os.chmod(cls.temporary.name, 0o755)
        cls.venv = wheel.make_venv(os.path.join(cls.temporary.name, "venv"))
        cls.before = wheel.files_below(cls.venv)
        wheel.pip(cls.venv, "install", "--no-index", path)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def bin(self, name, venv=None):
        return os.path.join(venv or self.venv, "bin", name)

    def soft(self, venv, *command):
        """A program on the soft GPU: how many devices the driver has."""
        code = "import ctypes; c = ctypes.CDLL('libcuda.so'); n = ctypes.c_int()\n"
        code += "print(c.cuInit(0), c.cuDeviceGetCount(ctypes.byref(n)), n.value, ctypes.CDLL('libcuda.so.1').cuInit(0))"
        return wheel.run(self.bin("cricket-run", venv), "--soft", "--", *command, "/usr/bin/python3", "-c", code, CRICKET_SOFT_DEVICES="9.0:1G,9.0:1G")

    def test_programs(self):
        for name in ("cricket-run", "cricketctl", "cricket-server"):
            status, text = wheel.run(self.bin(name), "--version")
            self.assertEqual((status, text.split()[0]), (0, name))
        self.assertEqual(self.soft(None), (0, "0 0 2 0\n"))

    def test_import(self):
        """Paths and versions, and nothing else: no process, no thread, no library, no variable."""
        code = ("import os, sys; e = dict(os.environ); m = set(sys.modules); maps = open('/proc/self/maps').read().count('.so')\n"
                "import cricket_gpu as c\n"
                "new = set(sys.modules) - m; assert new == {'cricket_gpu'}, new\n"
                "assert e == dict(os.environ) and open('/proc/self/maps').read().count('.so') == maps and len(os.listdir('/proc/self/task')) == 1\n"
                "import json; print(json.dumps({n: getattr(c, n) for n in [*c.__all__, '__version__']}))")
        status, text = wheel.run(self.bin("python"), "-c", code)
        self.assertEqual(status, 0, text)
        said = json.loads(text)
        version = said.pop("__version__")
        self.assertEqual(wheel.run(self.bin("cricket-run"), "--version")[1].split()[1], version)
        for name, value in said.items():
            self.assertTrue(os.path.exists(value) and value.startswith(self.venv), (name, value))
        with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as f:
            imported = [ast.unparse(node) for node in ast.walk(ast.parse(f.read())) if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.assertEqual(imported, ["import os as _os"])

    def test_moved(self):
        moved = os.path.join(self.temporary.name, "moved")
        shutil.copytree(self.venv, moved, symlinks=True)
        os.rename(self.venv, self.venv + ".away")
        try:
            self.assertEqual(self.soft(moved), (0, "0 0 2 0\n"))
            # By a link, as pipx makes them.
            link = os.path.join(self.temporary.name, "cricket-run")
            os.symlink(self.bin("cricket-run", moved), link)
            self.assertEqual(wheel.run(link, "--soft", "true"), (0, ""))
        finally:
            os.rename(self.venv + ".away", self.venv)

    def test_space(self):
        """LD_PRELOAD holds no space: an error that says so, and its remedy works."""
        spaced, link = os.path.join(self.temporary.name, "a space"), os.path.join(self.temporary.name, "link")
        shutil.copytree(self.venv, spaced, symlinks=True)
        status, text = self.soft(spaced)
        self.assertEqual((status, "LD_PRELOAD cannot hold" in text and "CRICKET_LIBDIR" in text), (126, True), text)
        os.symlink(wheel.run(self.bin("python", spaced), "-c", "import cricket_gpu; print(cricket_gpu.lib_directory)")[1].strip(), link)
        status, text = wheel.run(self.bin("cricket-run", spaced), "--soft", "/usr/bin/python3", "-c", INIT, CRICKET_LIBDIR=link)
        self.assertEqual((status, text), (0, "0\n"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_unprivileged(self):
        home = os.path.join(self.temporary.name, "home")
        os.mkdir(home)
        os.chown(home, 65534, 65534)
        file = shutil.copy(path, self.temporary.name)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=" + home, "TMPDIR=" + home]
        venv = os.path.join(home, "venv")
        for command in (["/usr/bin/python3", "-m", "venv", venv], [venv + "/bin/pip", "-q", "install", "--no-index", "--disable-pip-version-check", file]):
            status, text = wheel.run(*as_nobody, *command)
            self.assertEqual(status, 0, text)
        status, text = wheel.run(*as_nobody, venv + "/bin/cricket-run", "--soft", "/usr/bin/python3", "-c", INIT)
        self.assertEqual((status, text), (0, "0\n"))

    def test_target(self):
        """pip install --target has no prefix of an environment."""
        target = os.path.join(self.temporary.name, "target")
        wheel.pip(self.venv, "install", "--no-index", "--target", target, path)
        status, text = wheel.run("/usr/bin/python3", "-c", "import cricket_gpu as c; print(c.prefix)", PYTHONPATH=target)
        self.assertEqual((status, text), (0, target + "/cricket_gpu\n"))
        self.assertEqual(wheel.run(os.path.join(target, "bin", "cricket-run"), "--soft", "true"), (0, ""))

    def test_another_python(self):
        """Each other version that is here."""
        here, found = sys.version_info[:2], []
        for minor in range(10, 15):
            python = shutil.which(f"python3.{minor}")
            if python and (3, minor) != here and wheel.run(python, "-c", "import venv, ensurepip")[0] == 0:
                found.append(python)
        if not found:
            self.skipTest("one version of Python here")
        venv = wheel.make_venv(os.path.join(self.temporary.name, "other"), "--no-index", path, python=found[0])
        self.assertEqual(wheel.run(self.bin("python", venv), "-c", "import cricket_gpu as c; print(c.prefix.startswith(__import__('sys').prefix))"), (0, "True\n"))
        self.assertEqual(self.soft(venv), (0, "0 0 2 0\n"))

    def test_uninstall(self):
        venv = os.path.join(self.temporary.name, "left")
        shutil.copytree(self.venv, venv, symlinks=True)
        wheel.run(self.bin("python", venv), "-c", "import cricket_gpu.pytest_plugin")
        wheel.pip(venv, "uninstall", "--yes", "cricket-gpu")
        self.assertEqual(wheel.files_below(venv), self.before)
        self.assertEqual([d for d, _, _ in os.walk(venv) if "cricket" in d], [])


def main():
    global arguments, path
    parser = argparse.ArgumentParser()
    for option in ("packages", "tree", "cuda"):
        parser.add_argument(f"--{option}", required=True)
    arguments, rest = parser.parse_known_args()
    path = wheel.find(arguments.packages)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
