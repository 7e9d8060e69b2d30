#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore --with-client: whole programs, their own process included.  The first argument names a class of tests; exit status 77
where the tests of Processes cannot run on this machine."""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runner"))
import runner  # noqa: E402

BUILD = os.environ["CKT_TEST_BUILD"]
PYTHON = os.environ.get("CKT_TEST_PYTHON")
PR_SET_CHILD_SUBREAPER = 36


def program_path(name):
    return os.path.join(BUILD, "tests", "programs", name)


def criu_path():
    """PATH with a CRIU that may do."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    own = os.environ.get("CKT_TEST_CRIU")
    return own + ":" + path if own else path


def obstacle():
    """Why no process can be saved on this machine; None where one can."""
    program = shutil.which("criu", path=criu_path())
    if not program:
        return "there is no criu here"
    if os.geteuid() != 0:
        return "not run as root"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = version.split()[1].split(".") if version.startswith("Version: ") else ["0", "0"]
    if [int(n) for n in numbers[:2]] < [4, 1]:
        return "criu is too old: " + version.strip()
    done = subprocess.run([program, "check"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else "criu check: " + (done.stdout + done.stderr).strip()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.dir, 0o755)
        self.tree = runner.Tree(runner.stage(BUILD))
        self.servers, self.programs, self.restored = [], [], []
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        self.environment = {**os.environ, "PATH": criu_path(), "HOME": os.path.join(self.dir, "nobody"), "TMPDIR": self.dir}
        for name in ("CRICKET_STATE_DIR", "CRICKET_FAULT", "REMOTE_GPU_ADDRESS"):
            self.environment.pop(name, None)

    def tearDown(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
                program.process.wait()
        for pid in self.restored:
            try:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        for server in self.servers:
            workers = server.workers() if server.process.poll() is None else []
            server.kill()
            runner.end_all(workers, "the test's end")
        shutil.rmtree(self.dir, ignore_errors=True)

    def wait(self, condition):
        """The limit only keeps a test that fails from hanging."""
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.02)

    def server(self, name):
        server = runner.Server(self.tree, os.path.join(self.dir, name), "soft")
        self.servers.append(server)
        return server

    def run_ctl(self, server, *words, command=(), **extra):
        return subprocess.run([*command, self.tree.tool("cricketctl"), "--server", server.address, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, env={**self.environment, **extra}, check=False)

    def ctl(self, server, *words, **keywords):
        done = self.run_ctl(server, *words, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, server, *words, **keywords):
        done = self.run_ctl(server, *words, **keywords)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("cricketctl: "), done.stderr)
        return done.stderr

    def sessions(self, server):
        return runner.sessions_of(self.tree, server)

    def start(self, server, command, name="p", stdin=subprocess.DEVNULL, stdout=None):
        """A program at its mid point: (program, session).  Its output is appended to: CRIU wants files as long as they were."""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home})
        program = runner.Program.__new__(runner.Program)
        program.command = [self.tree.tool("cricket-run"), "--server", server.address, *command]
        program.out, program.err = os.path.join(directory, "stdout"), os.path.join(directory, "stderr")
        with open(program.out, "ab") as out, open(program.err, "ab") as err:
            program.process = subprocess.Popen(program.command, stdin=stdin, stdout=stdout or out, stderr=err, env=environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        (session,) = self.sessions(server)
        self.assertEqual(session["pid"], program.process.pid)
        return program, session["session"]

    def go(self):
        for suffix in ("", "2", "3"):
            open(self.point + ".go" + suffix, "w").close()

    def expected(self, command):
        server = self.server("plain")
        environment = runner.clean_environment()
        directory = os.path.join(self.dir, "expected")
        os.mkdir(directory)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, *command], environment)
        self.programs.append(program)
        code, out, err = program.wait(120)
        self.assertEqual(code, 0, out + err)
        return out

    def state_files(self):
        state = os.path.join(self.home, ".local", "state", "cricket")
        return sorted(os.listdir(state)) if os.path.isdir(state) else []


class Messages(Case):
    """What is said where CRIU is not there or not good enough: against one that only says what it is."""

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.bin)
        self.environment["PATH"] = self.bin
        self.first = self.server("first")
        self.program, self.session = self.start(self.first, [program_path("saxpy-static")])
        self.image = os.path.join(self.dir, "image")

    def fake(self):
        # Another user runs it too, and may not enter where this was checked out.
        fake = shutil.copy(os.path.join(HERE, "fake_criu.py"), self.bin)
        with open(os.path.join(self.bin, "criu"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec /usr/bin/python3 %s \"$@\"\n" % fake)
        os.chmod(f.name, 0o755)

    def finish(self):
        self.assertFalse(os.path.exists(self.image))
        self.assertEqual([name for name in os.listdir(self.dir) if "partial" in name], [])
        self.go()
        code, out, err = self.program.wait(60)
        self.assertEqual(code, 0, out + err)

    @unittest.skipIf(shutil.which("criu", path="/usr/local/sbin:/usr/sbin:/sbin"), "the machine has a criu, which cricketctl finds")
    def test_absent(self):
        for words in (("checkpoint", self.session, self.image, "--with-client"), ("restore", self.dir, "--with-client")):
            said = self.refused(self.first, *words)
            self.assertIn("PATH has no criu", said)
            self.assertIn("install it", said)
        self.finish()

    def test_versions(self):
        self.fake()
        for version in ("3.17.1", "4.0"):
            said = self.refused(self.first, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION=version)
            self.assertIn("is CRIU %s, but --with-client needs 4.1 or later" % version, said)
        said = self.refused(self.first, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION="none")
        self.assertIn("does not report its version", said)
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "not run as root")
    def test_kernel(self):
        self.fake()
        said = self.refused(self.first, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION="4.1", FAKE_CRIU_CHECK="0")
        self.assertIn("cannot work on this kernel", said)
        self.assertIn("criu check", said)
        self.assertIn("no such kernel feature", said)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("cricket-criu")], [])
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "not run as root")
    def test_privilege(self):
        """A user without the capability."""
        self.fake()
        shutil.copy(self.tree.tool("cricketctl"), self.bin)
        user = subprocess.run(["/usr/bin/setpriv", "--reuid=65534", "--clear-groups", os.path.join(self.bin, "cricketctl"), "--server", self.first.address,
                               "restore", self.dir, "--with-client"], capture_output=True, text=True, check=False,
                              env={**self.environment, "FAKE_CRIU_VERSION": "4.1"})
        self.assertEqual(user.returncode, 1, user.stderr)
        self.assertIn("CAP_CHECKPOINT_RESTORE", user.stderr)
        self.assertIn("sudo setcap cap_checkpoint_restore,cap_sys_ptrace+eip %s" % os.path.join(self.bin, "criu"), user.stderr)
        self.finish()

    def test_usage(self):
        for words in ((self.session, "--to-memory"), (self.session, "--server-side", "name"), (self.session, self.image, "--every", "1s")):
            done = self.run_ctl(self.first, "checkpoint", *words, "--with-client")
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.run_ctl(self.first, "restore", "--server-side", "name", "--with-client").returncode, 2)
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "not run as root")
    def test_elsewhere(self):
        """The program runs on another host than cricketctl."""
        self.fake()
        # It cannot find the server's socket by the host's name; over TCP without a token it would see no session.
        at_socket = types.SimpleNamespace(address="unix:" + self.first.socket)
        said = self.refused(at_socket, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION="4.1",
                            command=["/usr/bin/unshare", "--uts", "/bin/sh", "-c", "/bin/hostname elsewhere; exec \"$@\"", "sh"])
        self.assertIn("runs on %s: run" % os.uname().nodename, said)
        said = self.refused(at_socket, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION="4.1",
                            command=["/usr/bin/unshare", "--pid", "--fork"])
        self.assertIn("runs in a pid namespace of its own", said)
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "not run as root")
    def test_silent(self):
        """A worker that stands still may have its client or not."""
        self.fake()
        self.wait(lambda: [(s["state"], s["answered"]) for s in self.sessions(self.first)] == [("running", True)])
        worker = json.loads(self.ctl(self.first, "stats", self.session, "--json"))["worker_pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            said = self.refused(self.first, "checkpoint", self.session, self.image, "--with-client", FAKE_CRIU_VERSION="4.1")
        finally:
            os.kill(worker, signal.SIGCONT)
        self.assertEqual(said, "cricketctl: session %s: its worker does not answer: its process is stopped or hangs; let it continue, or end the "
                         "session with cricketctl kill\n" % self.session)
        self.finish()

    @unittest.skipIf(os.geteuid() != 0, "not run as root")
    def test_images(self):
        """What is no image of a client, and what others could have written."""
        self.fake()
        self.ctl(self.first, "checkpoint", self.session, self.image, "--stop")
        good = {"FAKE_CRIU_VERSION": "4.1"}
        self.assertIn("written without --with-client", self.refused(self.first, "restore", self.image, "--with-client", **good))
        client = os.path.join(self.image, "client")
        os.mkdir(client, 0o700)
        well = {"format": 1, "criu": "4.1", "pid": 4194303, "ids": [4194303], "program": "saxpy", "session": self.session, "uid": 0, "gid": 0,
                "state_dir": "/nowhere", "stdio": ["", "", ""]}
        for change in ({"format": 2}, {"pid": 0}, {"pid": "1"}, {"ids": []}, {"ids": [-1]}, {"ids": 7}, {"session": "../../../../x"}, {"uid": -1},
                       {"state_dir": "relative"}, {"state_dir": "/" * 5000}, {"stdio": ["", ""]}, {"stdio": [1, 2, 3]}, {"program": None}, None):
            with open(os.path.join(client, "client.json"), "w", encoding="utf-8") as f:
                f.write(json.dumps({**well, **change}) if change is not None else "{")
            self.assertIn("is not an image of a process", self.refused(self.first, "restore", self.image, "--with-client", **good))
        with open(os.path.join(client, "client.json"), "w", encoding="utf-8") as f:
            f.write(json.dumps({**well, "ids": [os.getpid()]}))
        self.assertIn("needs process number %d, but python" % os.getpid(),
                      self.refused(self.first, "restore", self.image, "--with-client", **good))
        os.chmod(client, 0o770)
        self.assertIn("other users can write it", self.refused(self.first, "restore", self.image, "--with-client", **good))
        os.chmod(client, 0o700)
        os.chown(client, 65534, 65534)
        self.assertIn("belongs to another user", self.refused(self.first, "restore", self.image, "--with-client", **good))
        self.assertEqual(self.sessions(self.first), [])
        self.go()


class Processes(Case):
    """With CRIU."""

    def setUp(self):
        super().setUp()
        # What is restored becomes our child once CRIU has ended, so that its exit status comes to us.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def ended(self, program, image):
        """The program was killed with all that was below it; nobody else takes note of those."""
        self.assertEqual(program.process.wait(60), -9)
        with open(os.path.join(image, "client", "client.json"), encoding="utf-8") as f:
            description = json.load(f)
        self.assertEqual(description["pid"], program.process.pid)
        self.reap(description["ids"])
        return description

    def reap(self, pids):
        for pid in pids:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass

    def restore(self, server, image, *words):
        answer = json.loads(self.ctl(server, "restore", image, "--with-client", "--json", *words))
        self.restored.append(answer["client_pid"])
        return answer["client_pid"]

    def exit_status(self, pid):
        deadline = time.monotonic() + 60
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self.restored.remove(pid)
                return status
            self.assertLess(time.monotonic(), deadline, "the restored program does not end")
            time.sleep(0.02)

    def finish(self, program, pid, expected):
        self.go()
        status = self.exit_status(pid)
        self.assertEqual(status, 0, program.output())
        with open(program.out, "rb") as f:
            self.assertEqual(f.read(), expected)

    def stop_and_restore(self, command, **keywords):
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command, **keywords)
        answer = json.loads(self.ctl(first, "checkpoint", session, image, "--with-client", "--stop", "--json"))
        self.assertEqual(answer["client_pid"], program.process.pid)
        self.assertTrue(answer["stopped"])
        self.assertEqual(self.sessions(first), [])
        description = self.ended(program, image)
        self.assertEqual(description["session"], session)
        first.kill()
        second = self.server("second")
        pid = self.restore(second, image)
        self.assertEqual(pid, program.process.pid)
        # ps says what the worker last said, which may be older if that does not answer within a second.
        self.wait(lambda: [(s["session"], s["pid"], s["state"]) for s in self.sessions(second)] == [(session, pid, "running")])
        self.assertEqual(self.state_files(), [session])
        self.finish(program, pid, self.expected(command))
        self.assertEqual(os.stat(image).st_mode & 0o777, 0o700)

    def test_memory(self):
        self.stop_and_restore([program_path("nbody-static")])

    def test_threads_and_child_shared(self):
        self.stop_and_restore([program_path("hoststate-shared")])

    def test_managed(self):
        self.stop_and_restore([program_path("managed-static")])

    def test_mapped(self):
        self.stop_and_restore([program_path("mapped-static")])

    @unittest.skipUnless(PYTHON, "no interpreter with Numba")
    def test_numba(self):
        self.stop_and_restore([PYTHON, os.path.join(HERE, os.pardir, "python", "numba_state.py")])

    def test_left_running(self):
        """It goes on where it was, to its end; and the image brings back the whole of it later, again and again."""
        command = [program_path("hoststate-static")]
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command)
        self.ctl(first, "checkpoint", session, image, "--with-client")
        self.assertIsNone(program.process.poll())
        self.assertEqual(self.state_files(), [])
        with open(os.path.join(image, "client", "client.json"), encoding="utf-8") as f:
            ids = json.load(f)["ids"]
        second = self.server("second")
        # Its numbers are in use: nothing is restored.
        self.assertIn("needs process number", self.refused(second, "restore", image, "--with-client"))
        self.assertEqual(self.sessions(second), [])
        self.go()
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(err.count(b"goes on"), 0)
        expected = self.expected(command)
        self.assertEqual(out, expected)
        self.assertGreater(len(ids), 4)
        flat = os.path.join(self.dir, "flat")
        self.ctl(second, "image", "flatten", image, flat)
        image = flat
        for name in ("again", "and again"):
            os.truncate(program.out, 0)
            for suffix in ("", "2", "3"):
                os.unlink(self.point + ".go" + suffix)
            third = self.server(name)
            pid = self.restore(third, image)
            if name == "and again":
                # What was restored is saved and restored in turn.
                image = os.path.join(self.dir, "later")
                self.ctl(third, "checkpoint", session, image, "--with-client", "--stop")
                self.assertEqual(self.exit_status(pid), 9)
                self.reap(ids)
                pid = self.restore(second, image)
            self.finish(program, pid, expected)

    def test_two_generations(self):
        """The program goes on at its first server while that session's copy lives on another: neither meets the other."""
        command = [program_path("nbody-static")]
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command)
        self.ctl(first, "checkpoint", session, image, "--with-client")
        second = self.server("second")
        # The copy comes up in a PID namespace of its own.
        done = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c",
                                 "\"$@\" || exit 99; while [ -e /proc/$PID ]; do sleep 0.05; done", "sh", self.tree.tool("cricketctl"), "--server",
                                 second.address, "restore", image, "--with-client"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env={**self.environment, "PID": str(program.process.pid)})
        self.wait(lambda: done.poll() is not None or [s for s in self.sessions(second) if s["state"] == "running"])
        if done.poll() is not None:
            self.fail(done.stdout.read())
        generations = [json.loads(self.ctl(server, "stats", session, "--json"))["generation"] for server in (first, second)]
        self.assertEqual(generations, [1, 2])
        # Both go on, into the same file.
        self.go()
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(done.wait(60), 0)
        done.stdout.close()
        with open(program.out, "rb") as f:
            self.assertEqual(f.read(), 2 * self.expected(command))

    def test_pipes(self):
        """Output that went into a pipe goes where cricketctl's own goes."""
        command = [program_path("pinned-static")]
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command, stdout=subprocess.PIPE)
        self.ctl(first, "checkpoint", session, image, "--with-client", "--stop")
        self.ended(program, image)
        with program.process.stdout as stdout:
            before = stdout.read()
        self.go()
        done = self.run_ctl(first, "restore", image, "--with-client")
        self.assertEqual(done.returncode, 0, done.stderr)
        os.waitpid(program.process.pid, 0)
        after = "".join(line for line in done.stdout.splitlines(True) if not line.startswith("session "))
        self.assertEqual(before + after.encode(), self.expected(command))

    def test_refused_by_criu(self):
        """A connection that is not ours: CRIU's log is named, the program goes on, and there is no image."""
        ours, theirs = socket.socketpair()
        command = [program_path("hoststate-static")]
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command, stdin=theirs.fileno())
        for stop in ((), ("--stop",)):
            said = self.refused(first, "checkpoint", session, image, "--with-client", *stop)
            self.assertIn("CRIU could not save process %d: " % program.process.pid, said)
            log = said.rsplit("CRIU's log is ", 1)[1].strip()
            with open(log, encoding="utf-8") as f:
                self.assertIn("Error", f.read())
            shutil.rmtree(os.path.dirname(log))
            self.assertFalse(os.path.exists(image))
            self.assertEqual([name for name in os.listdir(self.dir) if "partial" in name], [])
            self.assertEqual(self.state_files(), [])
        self.go()
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(out, self.expected(command))
        ours.close()
        theirs.close()

    def test_restore_refused_by_criu(self):
        """A restore that fails leaves no session behind, and the next one succeeds."""
        command = [program_path("nbody-static")]
        first, image, bad = self.server("first"), os.path.join(self.dir, "image"), os.path.join(self.dir, "bad")
        program, session = self.start(first, command)
        self.ctl(first, "checkpoint", session, image, "--with-client", "--stop")
        self.ended(program, image)
        shutil.copytree(image, bad)
        os.truncate(os.path.join(bad, "client", "mm-%d.img" % program.process.pid), 40)
        said = self.refused(first, "restore", bad, "--with-client")
        self.assertIn("CRIU could not restore the process: ", said)
        shutil.rmtree(os.path.dirname(said.rsplit("CRIU's log is ", 1)[1].strip()))
        self.wait(lambda: self.sessions(first) == [])
        self.reap([program.process.pid])
        self.finish(program, self.restore(first, image), self.expected(command))

    def test_killed_cricketctl(self):
        """At every point: the program goes on, the image is not there, and another attempt succeeds."""
        command = [program_path("hoststate-static")]
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, command)
        for point in ("212", "213"):
            for stop in ((), ("--stop",)):
                done = self.run_ctl(first, "checkpoint", session, image, "--with-client", *stop, CRICKET_FAULT=point)
                self.assertEqual(done.returncode, -9, done.stderr)
                self.assertFalse(os.path.exists(image))
                self.wait(lambda: self.sessions(first)[0]["state"] == "running" and not self.state_files())
                self.assertIsNone(program.process.poll())
        self.ctl(first, "checkpoint", session, image, "--with-client", "--stop")
        # What the killed ones had begun, another process removes.
        self.wait(lambda: [name for name in os.listdir(self.dir) if "partial" in name] == [])
        self.ended(program, image)
        done = self.run_ctl(first, "restore", image, "--with-client", CRICKET_FAULT="214")
        self.assertEqual(done.returncode, -9, done.stderr)
        # Its session waits there for its client: elsewhere it is restored once that has ended.
        self.wait(lambda: self.sessions(first)[0]["state"] == "restored")
        second = self.server("second")
        self.assertIn("end it there first", self.refused(second, "restore", image, "--with-client"))
        self.ctl(first, "kill", session)
        self.finish(program, self.restore(second, image), self.expected(command))


if __name__ == "__main__":
    if sys.argv[1:2] == ["Processes"]:
        reason = obstacle()
        if reason:
            print("skipped: " + reason)
            sys.exit(77)
    unittest.main(verbosity=2)
