#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a user of the client sees: an address where nothing answers, an address in a file, a misspelt variable, and a process with little in it."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runner"))
import runner  # noqa: E402

NBODY, FAULT = os.environ["CKT_TEST_PROGRAM"], os.environ["CKT_TEST_FAULT"]
# What glibc is made of; a program's own libraries come with it.
GLIBC = re.compile(r"(ld-linux-x86-64|ld-linux-aarch64|libc|libm|libdl|libpthread|librt)\.so\.\d$")

DEVICES = """
#include <stdio.h>
int cudaGetDeviceCount(int *count);
int cudaMalloc(void **p, unsigned long size);
int main(void)
{
	int count = -1;
	void *p;
	int first = cudaGetDeviceCount(&count), second = cudaMalloc(&p, 16);
	printf("%d %d\\n", first, second);
	return 0;
}
"""


class Client(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.dir, 0o755)
        self.tree = runner.Tree(runner.stage(os.environ["CKT_TEST_BUILD"]))
        self.servers, self.programs = [], []

    def tearDown(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
                program.process.wait()
        for server in self.servers:
            workers = server.workers() if server.process.poll() is None else []
            server.kill()
            runner.end_all(workers, "the test's end")
        shutil.rmtree(self.dir, ignore_errors=True)

    def wait(self, condition):
        """The limit only keeps a test that fails from hanging."""
        end = time.monotonic() + runner.GUARD_S
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.02)

    def server(self, name="server"):
        server = runner.Server(self.tree, os.path.join(self.dir, name), "soft")
        self.servers.append(server)
        return server

    def start(self, program, address, name="program", **env):
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        environment = {**runner.clean_environment(), **env}
        started = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", address, program], environment)
        self.programs.append(started)
        return started

    def at_mid_point(self, address, **env):
        self.point = os.path.join(self.dir, "phase")
        program = self.start(NBODY, address, CKT_TEST_PHASE_FILE=self.point, **env)
        program.wait_ready(self.point + ".ready", runner.GUARD_S)
        return program

    def finish(self, program):
        for suffix in ("", "2", "3"):
            with open(self.point + ".go" + suffix, "w", encoding="utf-8"):
                pass
        code, out, err = program.wait(2 * runner.GUARD_S)
        self.assertEqual(code, 0, out + err)
        return err.decode()

    def compiled(self, name, source):
        path = os.path.join(self.dir, name)
        with open(path + ".c", "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run(["cc", "-w", path + ".c", "-o", path, "-L" + self.tree.lib, "-l:libcudart.so.13", "-Wl,--allow-shlib-undefined"], check=True)
        return path

    def devices(self, address, **env):
        """(what the program printed, what was said on stderr)"""
        program = os.path.join(self.dir, "devices")
        if not os.path.exists(program):
            self.compiled("devices", DEVICES)
        done = subprocess.run([self.tree.tool("cricket-run"), program], env={**runner.clean_environment(), "REMOTE_GPU_ADDRESS": address, **env},
                              capture_output=True, text=True, timeout=runner.GUARD_S, check=True)
        return done.stdout, done.stderr

    def test_wrong_addresses(self):
        """cudaErrorNoDevice from every call, and one line: address, cause, remedy."""
        def note(name, text):
            path = os.path.join(self.dir, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return "file:" + path
        dead, empty, other = note("dead", "127.0.0.1:1\n"), note("empty", ""), note("other", "gpunode:what\n")
        for address, cause, remedy in (("127.0.0.1:1", "Connection refused", "check that cricket-server runs there"),
                                       ("unix:/nonexistent/s", "No such file", "check that cricket-server runs there"),
                                       ("no-such-host.invalid", "", "REMOTE_GPU_ADDRESS"), (dead, "127.0.0.1:1: Connection refused", "REMOTE_GPU_ADDRESS"),
                                       ("file:/nonexistent", "No such file", "REMOTE_GPU_ADDRESS"), (empty, "is empty", "must hold one address"),
                                       (other, "'what' is not a port number", "write host:port"), ("gpunode:what", "'what' is not a port number", "write host:port"),
                                       ("gpunode:", "'' is not a port number", "write host:port"), ("[::1", "is not an address", "write [v6-address]:port"),
                                       ("unix:", "names no path", "write unix:/path")):
            with self.subTest(address=address):
                out, err = self.devices(address)
                self.assertEqual(out, "100 100\n")
                self.assertEqual(err.count("\n"), 1, err)
                for part in (address, cause, remedy):
                    self.assertIn(part, err)

    def test_not_a_server(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            address = "127.0.0.1:%d" % listener.getsockname()[1]

            def answer():
                peer = listener.accept()[0]
                peer.sendall(b"220 mail.example.org ESMTP\r\n" * 10)
                peer.close()
            # If nobody comes, it does not keep the test from ending.
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            out, err = self.devices(address)
            thread.join()
        self.assertEqual(out, "100 100\n")
        self.assertRegex(err, r"\Acricket: no GPU: %s: .*check that this is a cricket-server's port\n\Z" % re.escape(address))

    def test_unknown_variables(self):
        out, err = self.devices(self.server().address, CRICKET_TOKEN_FIEL="x", CRICKET_SYNC="1", CRICKET_="", CRICKETS="1")
        self.assertEqual(out, "0 0\n")
        for name in ("CRICKET_TOKEN_FIEL", "CRICKET_"):
            self.assertEqual(len(re.findall(r"\b%s\b" % name, err)), 1, err)
        self.assertEqual(err.count("\n"), 2, err)

    def test_address_in_a_file(self):
        """The file is read at every connect: whoever writes another address there moves the program."""
        first, image, path = self.server("first"), os.path.join(self.dir, "image"), os.path.join(self.dir, "address")
        with open(path, "w", encoding="utf-8") as f:
            f.write(first.address + "\n")
        program = self.at_mid_point("file:" + path)
        (session,) = runner.sessions_of(self.tree, first)
        runner.cricketctl(self.tree, "--server", first.address, "checkpoint", session["session"], image, "--stop")
        first.kill()
        second = self.server("second")
        runner.cricketctl(self.tree, "--server", second.address, "restore", image)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(second.address + "\n")
        os.rename(path + ".new", path)
        self.finish(program)

    def test_only_libc_and_ours(self):
        """In the program's process: what it is linked with itself, glibc, and our libraries."""
        program = self.at_mid_point(self.server().address)
        with open("/proc/%d/maps" % program.process.pid, encoding="utf-8") as f:
            files = {os.path.realpath(line.split(None, 5)[5].strip()) for line in f if " /" in line}
        own = {os.path.realpath(p) for p in re.findall(r"=> (/\S+)", subprocess.run(["ldd", NBODY], capture_output=True, text=True, check=True).stdout)}
        ours = {f for f in files if os.path.dirname(f) == os.path.realpath(self.tree.lib)}
        self.assertLessEqual({"libcricket-client.so", "libcuda.so.1"}, {os.path.basename(f) for f in ours})
        rest = {f for f in files - ours - own - {os.path.realpath(NBODY)} if not GLIBC.match(os.path.basename(f)) and "/locale/" not in f}
        self.assertEqual(rest, set())
        for name in ("tirpc", "krb5", "gssapi", "nettle", "zstd"):
            self.assertEqual([f for f in files if name in os.path.basename(f)], [])
        self.finish(program)

    def test_a_fault_is_one_sessions_own(self):
        server = self.server()
        program = self.at_mid_point(server.address)
        code, out, err = self.start(FAULT, server.address, "fault").wait(runner.GUARD_S)
        self.assertEqual(code, 0, out + err)
        # "starting" where its worker has not answered in time.
        self.wait(lambda: [s["state"] for s in runner.sessions_of(self.tree, server) if s["program"].startswith("nbody")] == ["running"])
        self.finish(program)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("cc"), "needs root, whose workers are another user, and a C compiler")
    def test_compiled_elsewhere(self):
        """A process of the server's compiles the kernels, not the worker; after a crash its successor does."""
        # Without a cache, which would have the kernels the second time.
        server = runner.Server(self.tree, os.path.join(self.dir, "server"), "soft", env={"CRICKET_SOFT_COMPILE": "1", "CACHE_DIRECTORY": "/proc/nowhere"})
        self.servers.append(server)

        def compilers():
            return [pid for pid in runner.children_of(server.process.pid) if runner.compiles(pid) and runner.alive(pid)]

        def compiler(but=None):
            """The one that there is: looked for once a try, since one that was killed may be there for a moment."""
            found = []

            def is_there():
                found[:] = compilers()
                return len(found) == 1 and found != but

            self.wait(is_there)
            return found

        def ticks(pid):
            """Processor time of the children that it has waited for."""
            with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
                return sum(int(word) for word in f.read().rsplit(")", 1)[1].split()[13:15])

        # A process that has just been made still has the server's name.
        first = second = compiler()
        for turn in ("first", "second"):
            self.assertEqual(ticks(second[0]), 0)
            code, out, err = self.start(NBODY, server.address, turn).wait(runner.GUARD_S)
            self.assertEqual(code, 0, out + err)
            self.assertGreater(ticks(second[0]), 0)
            with open("/proc/%d/status" % second[0], encoding="utf-8") as f:
                self.assertNotIn("Uid:\t0", f.read())
            if turn == "first":
                os.kill(first[0], signal.SIGKILL)
                second = compiler(but=first)
        # It ends with its server.
        server.stop()
        self.assertFalse(runner.alive(second[0]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
