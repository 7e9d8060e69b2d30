#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client's NVML against a real server: the server's GPUs as they may be used, without a session; and servers that do not answer."""
import json
import os
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from fixture import GUARD, SOFT, ServerTest, wait_until  # noqa: E402

LIBRARY, CLIENT, CUDA, FAKE = (os.environ["CKT_TEST_" + name] for name in ("NVML", "NVML_CLIENT", "CUDA", "FAKE_NVML"))
MIB = 1 << 20
UNINITIALIZED, INVALID, NOT_SUPPORTED, NOT_LOADED, TIMEOUT = 1, 2, 3, 9, 10
TOKEN = "0123456789abcdef0123456789abcdef"


class Nvml(ServerTest):
    real = True

    def command(self, words, address=None, **extra):
        environment = self.environment(REMOTE_GPU_ADDRESS=address or "unix:" + self.socket, **extra)
        return [CLIENT, LIBRARY] + [str(w) for w in words], environment

    def ask(self, *words, address=None, stderr="", **extra):
        """The lines that the commands print."""
        command, environment = self.command(words, address, **extra)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUARD, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if stderr:
            self.assertIn(stderr, done.stderr)
        else:
            self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def listed(self, line):
        """What NVML says of the processes of GPU 0: the server asks their workers, and leaves out one that stands still for a second."""
        wait_until(lambda: self.ask("init", "processes", 0)[1] == line, what="the processes are never %s" % line)

    def token_file(self):
        path = os.path.join(self.dir, "token")
        with open(path, "w", encoding="utf-8") as f:
            f.write(TOKEN)
        os.chmod(path, 0o600)
        return path

    def sessions(self):
        return len(self.ps())

    def start_soft(self, *options, devices="9.0:2G,12.0:1G", **env):
        return self.start(*options, env=dict(CRICKET_SOFT_DEVICES=devices, **env))


class Listing(Nvml):
    def test_devices(self):
        self.start_soft()
        for address in ("unix:" + self.socket, "127.0.0.1:%d" % self.tcp[1], "file:" + self.address_file):
            lines = self.ask("count", "init", "count", "list", 0, "list", 1, "list", 2, "shutdown", "count", "shutdown", address=address)
            self.assertEqual(lines[0], "%d 7" % UNINITIALIZED)
            self.assertEqual(lines[1:3], ["0", "0 2"])
            name, uuid, pci, capability, version, found = lines[3][2:].split("|")
            self.assertEqual((lines[3][:2], name, capability, version, found), ("0 ", "Cricket Soft GPU", "9.0", "13000", "11"))
            self.assertRegex(uuid, r"^GPU-[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$")
            self.assertRegex(pci, r"^[0-9A-F]{8}:01:00\.0$")
            self.assertIn("|12.0|", lines[4])
            self.assertEqual(lines[5][0], str(INVALID))
            self.assertEqual(lines[6:], ["0", "%d 7" % UNINITIALIZED, str(UNINITIALIZED)])
        # Nobody's worker was needed for it.
        self.assertEqual(self.sessions(), 0)
        self.assertNotIn("session ", self.log())

    def test_narrowed(self):
        """--gpus is the server's; CUDA_VISIBLE_DEVICES is CUDA's, and NVML lists what it would hide."""
        self.start_soft("--gpus", "1")
        (_, count, first) = self.ask("init", "count", "list", 0, CUDA_VISIBLE_DEVICES="")
        self.assertEqual(count, "0 1")
        self.assertIn("|12.0|", first)

    def test_order(self):
        """By PCI bus id, whatever the order of --gpus."""
        self.start_soft("--gpus", "1,0")
        lines = self.ask("init", "list", 0, "list", 1)
        self.assertIn("|9.0|", lines[1])
        self.assertIn("|12.0|", lines[2])

    def test_token(self):
        path = self.token_file()
        self.start_soft("--token-file", path)
        address = "127.0.0.1:%d" % self.tcp[1]
        self.assertEqual(self.ask("init", "count", address=address, CRICKET_TOKEN_FILE=path), ["0", "0 2"])
        for token_file, words in (("", "requires a token"), (os.path.join(self.dir, "none"), "No such file")):
            lines = self.ask("init", "init", address=address, CRICKET_TOKEN_FILE=token_file, stderr=words)
            self.assertEqual(lines, [str(NOT_LOADED)] * 2)
        with open(path, "w", encoding="utf-8") as f:
            f.write(TOKEN[::-1])
        self.ask("init", address=address, CRICKET_TOKEN_FILE=path, stderr="the token does not match the server's")

    def test_forks_and_threads(self):
        self.start_soft()
        self.assertEqual(self.ask("init", "fork", "count", "memory", 1), ["0", "0 2", "0 %d %d 0 1" % (1 << 30, 1 << 30)])
        self.assertEqual(self.ask("threads", 8), ["0 0"])


class Use(Nvml):
    def test_memory(self):
        """As cuMemGetInfo tells the program itself; another one has GPUs of its own on the soft GPU."""
        self.start_soft()
        lines = self.ask("init", "memory", 0, "processes", 0, "cuda", CUDA, 300 * MIB, "memory", 0, "memory", 1, "processes", 0, "processes", 1)
        self.assertEqual(lines[1:3], ["0 %d %d 0 1" % (2 << 30, 2 << 30), "0 0"])
        result, total, left = map(int, lines[3].split())
        self.assertEqual((result, total), (0, 2 << 30))
        self.assertEqual(lines[4], "0 %d %d %d 1" % (total, total - 300 * MIB, 300 * MIB))
        self.assertLessEqual(left, total - 300 * MIB)
        self.assertEqual(lines[5], "0 %d %d 0 1" % (1 << 30, 1 << 30))
        self.assertRegex(lines[6], r"^0 1 \d+:%d$" % (300 * MIB))
        self.assertEqual(lines[7], "0 0")

    def test_limit(self):
        self.start_soft("--session-memory", "512M")
        lines = self.ask("init", "memory", 0, "cuda", CUDA, 100 * MIB, "memory", 0)
        self.assertEqual(lines[1], "0 %d %d 0 1" % (512 * MIB, 512 * MIB))
        self.assertEqual(lines[2].split()[:2], ["0", str(512 * MIB)])
        self.assertEqual(lines[3], "0 %d %d %d 1" % (512 * MIB, 412 * MIB, 100 * MIB))

    def test_processes(self):
        """Of this host, and those that the caller may see; with the client's own numbers."""
        self.start_soft()
        command, environment = self.command(["cuda", CUDA, 64 * MIB, "wait"])
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline().split()[0], "0")
            line = "0 1 %d:%d" % (program.pid, 64 * MIB)
            self.listed(line)
            # Also by a server that came later.
            self.servers[0].kill()
            self.servers[0].wait()
            self.start_soft()
            self.listed(line)
            program.stdin.write("\n")
            program.stdin.close()
            program.wait(GUARD)
        self.listed("0 0")


class Genuine(Nvml):
    """The server has an NVML: a made-up one here, and a driver that is not known to be the soft GPU."""

    def start_genuine(self, *options, **env):
        driver = os.path.join(self.dir, "driver.so")
        shutil.copy(SOFT, driver)
        library = os.path.join(self.dir, "libnvidia-ml.so.1")
        shutil.copy(FAKE, library)
        self.processes = os.path.join(self.dir, "processes")
        return self.start_soft("--driver", driver, *options, LD_LIBRARY_PATH=self.dir, FAKE_NVML_PROCESSES=self.processes, **env)

    def test_figures(self):
        self.start_genuine()
        lines = self.ask("init", "figures", 0, "figures", 1)
        results, values, refused = lines[1].split(" | ")
        self.assertEqual(results, " ".join("0" * 12))
        self.assertEqual(values, "1000 40 1503 1,0 11,12,13,14 73,21 102 5000000102 SERIAL-1234 77 0:5002,3 999.88.255")
        self.assertEqual(refused, "7 25 2 2 2 3")
        self.assertTrue(lines[2].split(" | ")[1].startswith("1001 40 1503"), lines[2])

    def test_memory(self):
        """What is free is what is free on the GPU, whoever uses the rest; a limit still counts."""
        self.start_genuine()
        self.assertEqual(self.ask("init", "memory", 0)[1], "0 %d %d %d 1" % (2 << 30, 700 * MIB, (2 << 30) - 700 * MIB))

    def test_limit(self):
        self.start_genuine("--session-memory", "512M")
        self.assertEqual(self.ask("init", "memory", 0)[1], "0 %d %d 0 1" % (512 * MIB, 512 * MIB))

    def test_processes(self):
        self.start_genuine()
        command, environment = self.command(["cuda", CUDA, 64 * MIB, "wait"])
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline().split()[0], "0")
            (session,) = self.ps()
            with open(self.processes, "w", encoding="utf-8") as f:
                f.write("1 5555\n%d 123456789\n" % self.worker_of(session["session"]))
            # Whose process 1 is nobody here is told.
            self.listed("0 1 %d:123456789" % program.pid)
            program.stdin.close()
            program.wait(GUARD)

    def test_reader_dies(self):
        """Whatever NVML does, the server goes on, and says at once that there is no answer."""
        self.start_genuine()
        for clock in (101, 102):
            self.assertEqual(self.ask("init", "clock", clock, "count"), ["0", str(TIMEOUT), "0 2"])
        self.assertEqual(self.ctl("info").returncode, 0)

    def test_reader_hangs(self):
        self.start_genuine()
        waiting = threading.Thread(target=lambda: self.ask("init", "clock", 100), daemon=True)
        waiting.start()
        self.assertEqual(self.ask("init", "clock", 100, "count", "list", 0)[:3], ["0", str(TIMEOUT), "0 2"])
        self.assertEqual(self.ask("init", "memory", 0)[1].split()[:2], ["0", str(2 << 30)])
        waiting.join()

    def test_does_not_start(self):
        self.start_genuine(FAKE_NVML_INIT="9")
        self.check_without()

    def check_without(self):
        lines = self.ask("init", "figures", 0, "memory", 0, "figures", 0)
        results, values, _ = lines[1].split(" | ")
        self.assertEqual(results.split(), ["3"] * 10 + ["0", "0"])
        self.assertTrue(values.startswith("7 7 7 7,7 7,7,7,7 7,7 7 7 - 0 3:0,3 13.0"), values)
        self.assertEqual(lines[2], "0 %d %d 0 1" % (2 << 30, 2 << 30))
        self.assertEqual(lines[1], lines[3])

    def test_doctor(self):
        def found():
            checks = json.loads(self.ctl("doctor", "--json").stdout)["checks"]
            return [(c["result"], c["message"]) for c in checks if c["name"] == "nvml"]
        server = self.start_genuine()
        self.assertEqual(found(), [("ok", "the server's NVML works")])
        server.terminate()
        server.wait(GUARD)
        server = self.start_genuine(FAKE_NVML_INIT="9")
        ((result, message),) = found()
        self.assertEqual(result, "warning")
        self.assertIn("finds no working NVML", message)
        server.terminate()
        server.wait(GUARD)
        self.start_soft()
        self.assertEqual(found(), [])

    def test_soft(self):
        self.start_soft(LD_LIBRARY_PATH=os.path.dirname(FAKE))
        self.check_without()


class Absent(Nvml):
    def test_no_server(self):
        lines = self.ask("init", "count", "init", address="unix:/nowhere/socket", stderr="/nowhere/socket")
        self.assertEqual(lines, [str(NOT_LOADED), "%d 7" % UNINITIALIZED, str(NOT_LOADED)])
        self.ask("init", address="nonsense:1:2", stderr="nonsense")

    def test_server_ends(self):
        server = self.start_soft()
        command, environment = self.command(["init", "wait", "count", "list", 0, "memory", 0, "figures", 0, "shutdown", "init"])
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stdout.readline(), "0\n")
            server.kill()
            server.wait()
            out, err = program.communicate("\n", timeout=GUARD)
        lines = out.splitlines()
        self.assertEqual(lines[0], "0 2")
        self.assertTrue(lines[1].startswith("0 Cricket Soft GPU|"))
        self.assertEqual(lines[2], "9 7 7 7 1")
        self.assertEqual(lines[3].split(" | ")[0].split(), ["9"] * 12)
        self.assertEqual(lines[4:], ["0", "9"])
        self.assertEqual(err.count("NVML: "), 1)


if __name__ == "__main__":
    unittest.main()
