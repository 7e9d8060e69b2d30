#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--uid-range: one user id for the workers of each owner; what an owner's worker can do to another's, and what it can leave to the next."""
import contextlib
import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402
import subordinate  # noqa: E402

IPC = os.environ["CKT_TEST_IPC"]
# Not those of another run of this test on the host.
# Of a server that is not root's: nobody else starts processes as this user.
USER = "news"
FIRST = 200000 + os.getpid() % 1000 * 10


def ids(pid, what="Uid"):
    """Real, effective, saved and file system's."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        (line,) = [line for line in f if line.startswith(what + ":")]
    return [int(word) for word in line.split()[1:]]


def owner_of(path):
    """None: it has gone meanwhile, and was another test's."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_uid
    return None


def as_user(uid, script, *arguments):
    """What a process of that user prints, in the host's own mount namespace."""
    done = subprocess.run(["/usr/bin/python3", "-c", "import os, sys\n" + script, *map(str, arguments)], user=uid, group=uid, extra_groups=[],
                          capture_output=True, check=False, timeout=60, cwd="/")
    return done.stdout.decode() + done.stderr.decode()


class Ranged(Whole):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to have workers of several users")
        super().setUp()
        self.shown = {name: self.token(name) for name in ("alice", "bob", "carol")}

    def ranged(self, count=10):
        server = self.server("server", "--uid-range", "%d-%d" % (FIRST, FIRST + count - 1), "--tokens", self.tokens, "--log-level", "debug")
        # As from another host: cricketctl would take the socket, and then be root and no owner of a token.
        os.rename(server.socket, server.socket + ".hidden")
        self.root = ["--server", "unix:" + server.socket + ".hidden"]
        return server

    def wait_said(self, server, line):
        """A server tells what it is like after it has written its address."""
        self.wait(lambda: line in self.log_of(server))

    def sessions(self):
        return {s["session"]: s for s in json.loads(runner.cricketctl(self.tree, *self.root, "ps", "--json"))["sessions"]}

    def worker_of(self, session):
        return json.loads(runner.cricketctl(self.tree, *self.root, "stats", session, "--json"))["worker_pid"]

    def command(self, server, owner, name, program):
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        point = os.path.join(directory, "phase")
        environment = {**runner.clean_environment(), "CKT_TEST_PHASE_FILE": point, "HOME": self.home, "CRICKET_TOKEN_FILE": self.shown[owner]}
        process = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, program], environment)
        process.point = point
        self.programs.append(process)
        return process

    def run_to_mid(self, server, owner, name, program=None):
        """A program of that owner at its mid point: (program, session, worker)"""
        before = set(self.sessions())
        process = self.command(server, owner, name, program or os.environ["CKT_TEST_PROGRAM"])
        process.wait_ready(process.point + ".ready", 60)
        (session,) = set(self.sessions()) - before
        return process, session, self.worker_of(session)

    def go_on(self, process):
        for suffix in ("", "2", "3"):
            open(process.point + ".go" + suffix, "w", encoding="utf-8").close()
        code, out, err = process.wait(60)
        self.assertEqual(code, 0, out + err)
        return out

    def as_owner(self, server, owner, *words):
        return runner.cricketctl(self.tree, "--server", server.address, *words, env={"CRICKET_TOKEN_FILE": self.shown[owner]})

    def records(self, server):
        return sorted(int(os.path.basename(path)[4:]) for path in glob.glob(server.socket + ".d/uid-*"))


class Uids(Ranged):
    def test_two_owners(self):
        """Each has an id of its own, and no way to the other's processes and files."""
        server = self.ranged()
        self.wait_said(server, "workers: a user id for each owner, %d to %d" % (FIRST, FIRST + 9))
        a, _, alice = self.run_to_mid(server, "alice", "a")
        b, _, bob = self.run_to_mid(server, "bob", "b")
        c, _, also = self.run_to_mid(server, "alice", "c")
        found = [ids(pid) + ids(pid, "Gid") for pid in (alice, bob, also)]
        for each in found:
            self.assertEqual(len(set(each)), 1, "real, effective, saved and file system's, user and group")
            self.assertIn(each[0], range(FIRST, FIRST + 10))
        self.assertEqual(found[0], found[2])
        self.assertNotEqual(found[0], found[1])
        ua, ub = found[0][0], found[1][0]
        self.assertEqual(self.records(server), sorted([ua, ub]))
        shms = [os.stat("/proc/%d/root/dev/shm" % pid) for pid in (alice, bob, also)]
        self.assertEqual([shm.st_uid for shm in shms], [ua, ub, ua])
        self.assertEqual(shms[0].st_dev, shms[2].st_dev)
        self.assertEqual(len({shm.st_dev for shm in (*shms, os.stat("/dev/shm"))}), 3)
        self.assertEqual(glob.glob("/dev/shm/cricket-%d-*" % FIRST), [], "nothing on the host")
        told = as_user(ua, """
def tried(what, call):
    try:
        print(what, "done", call())
    except OSError as error:
        print(what, error.strerror)
other, own = int(sys.argv[1]), int(sys.argv[2])
tried("own signal", lambda: os.kill(own, 0))
tried("signal", lambda: os.kill(other, 0))
for name in ("mem", "environ", "maps"):
    tried(name, lambda: open("/proc/%d/%s" % (other, name), "rb").read(1))
for name in ("fd", "root"):
    tried(name, lambda: os.listdir("/proc/%d/%s" % (other, name)))
""", bob, alice)
        self.assertEqual(told.splitlines(), ["own signal done None", "signal Operation not permitted"] +
                         [name + " Permission denied" for name in ("mem", "environ", "maps", "fd", "root")])
        for process in (a, b, c):
            self.go_on(process)
        self.wait(lambda: self.records(server) == [])

    def test_saved_and_restored(self):
        """Saving, stopping and restoring as the owner, over TCP, gives the owner's id again; so does a program that shares memory."""
        server = self.ranged()
        a, session, worker = self.run_to_mid(server, "alice", "a")
        image = os.path.join(self.dir, "image")
        uid = ids(worker)[0]
        b, _, other = self.run_to_mid(server, "alice", "b", IPC)
        self.assertEqual(ids(other)[0], uid)
        self.as_owner(server, "alice", "checkpoint", session, image, "--stop")
        self.assertEqual(self.records(server), [uid])
        self.as_owner(server, "alice", "restore", image)
        self.assertEqual(ids(self.worker_of(session))[0], uid)
        self.go_on(b)
        self.as_owner(server, "alice", "pause", session)
        self.as_owner(server, "alice", "resume", session)
        self.go_on(a)
        self.wait(lambda: self.records(server) == [])

    def test_left_behind(self):
        """What a worker's children and files are to the next owner: gone, before that owner has the id."""
        server = self.ranged(1)
        a, _, worker = self.run_to_mid(server, "alice", "a")
        (uid,) = set(ids(worker))
        name = "cricket-test-left-%d" % os.getpid()
        read, write = os.pipe()
        as_user(uid, """
for directory in ("/tmp", "/var/tmp", "/dev/shm"):
    os.makedirs(os.path.join(directory, sys.argv[1], "deep"))
    open(os.path.join(directory, sys.argv[1], "deep", "file"), "w").close()
""", name)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            for number in range(1, signal.NSIG):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            os.setsid()
            os.write(write, b"x")
            # It forks and goes on in its child, for as long as it is let.
            while True:
                pid = os.fork()
                if pid:
                    os.waitpid(pid, os.WNOHANG)
                    signal.sigtimedwait([], 0.01)
                    os._exit(0)
        self.assertEqual(os.read(read, 1), b"x")
        os.waitpid(child, 0)
        os.close(write)
        # The id is not another's while its owner's worker lives.
        refused = self.command(server, "bob", "b", os.environ["CKT_TEST_PROGRAM"])
        code, _, err = refused.wait(60)
        self.assertNotEqual(code, 0)
        self.assertIn("no user id of --uid-range %d-%d is free" % (FIRST, FIRST), err.decode())
        c, _, also = self.run_to_mid(server, "alice", "c")
        self.assertEqual(ids(also)[0], uid)
        self.go_on(c)
        self.assertTrue(os.path.exists("/tmp/" + name))
        os.kill(worker, signal.SIGKILL)
        a.process.kill()
        self.wait(lambda: self.records(server) == [])
        # All ends of the pipe were that process's.
        self.assertEqual(os.read(read, 1), b"")
        os.close(read)
        for directory in ("/tmp", "/var/tmp", "/dev/shm"):
            self.assertFalse(os.path.exists(os.path.join(directory, name)))
        d, _, now = self.run_to_mid(server, "bob", "d")
        self.assertEqual(ids(now)[0], uid)
        self.go_on(d)

    def test_next_server(self):
        """It knows whose the ids of the workers are that it finds."""
        server = self.ranged()
        a, _, alice = self.run_to_mid(server, "alice", "a")
        b, _, bob = self.run_to_mid(server, "bob", "b")
        uids = ids(alice)[0], ids(bob)[0]
        server.kill()
        os.kill(bob, signal.SIGKILL)
        b.process.kill()
        os.unlink(os.path.join(server.directory, "address"))
        server = self.ranged()
        self.wait(lambda: self.records(server) == [uids[0]])
        c, _, also = self.run_to_mid(server, "alice", "c")
        self.assertEqual(ids(also)[0], uids[0])
        d, _, other = self.run_to_mid(server, "carol", "d")
        self.assertNotIn(ids(other)[0], uids[:1])
        for process in (a, c, d):
            self.go_on(process)
        self.wait(lambda: self.records(server) == [])


class Subordinate(Uids):
    """The same with a server of an ordinary user's, which has the range in /etc/subuid and its programs in a closed home."""

    def setUp(self):
        super().setUp()
        if subordinate.lacking():
            self.skipTest(subordinate.lacking())
        self.user = pwd.getpwnam(USER)
        closed = tempfile.mkdtemp(prefix="ckt-home-", dir="/run")
        self.addCleanup(shutil.rmtree, closed)
        self.mine = runner.Tree(os.path.join(closed, "tree"))
        for part in ("bin", "lib/cricket", "libexec"):
            shutil.copytree(os.path.join(self.tree.prefix, part), os.path.join(self.mine.prefix, part), symlinks=True)
        os.chown(closed, self.user.pw_uid, self.user.pw_gid)
        os.chown(self.tokens, self.user.pw_uid, self.user.pw_gid)
        self.subordinate = os.path.join(self.dir, "subordinate")
        self.give(FIRST, 10)

    def give(self, first, count):
        with open(self.subordinate, "w", encoding="utf-8") as f:
            f.write("%s:%d:%d\n" % (USER, first, count))

    def ranged(self, count=10):
        directory = os.path.join(self.dir, "server")
        os.makedirs(directory, exist_ok=True)
        os.chown(directory, self.user.pw_uid, self.user.pw_gid)
        server = runner.Server(self.mine, directory, "soft",
                               ("--uid-range", "%d-%d" % (FIRST, FIRST + count - 1), "--tokens", self.tokens, "--log-level", "debug"),
                               {"HOME": directory, "XDG_RUNTIME_DIR": directory}, preexec_fn=lambda: subordinate.become(self.user, self.subordinate))
        self.servers.append(server)
        os.rename(server.socket, server.socket + ".hidden")
        self.root = ["--server", "unix:" + server.socket + ".hidden"]
        self.assertNotIn("share the server's user", self.log_of(server))
        self.wait_said(server, "private /tmp and /dev/shm")
        return server

    def test_cage(self):
        """A worker has neither capabilities nor the server's groups, nor a way to the server's files and to what its user may do."""
        server = self.ranged()
        a, _, worker = self.run_to_mid(server, "alice", "a")
        with open("/proc/%d/status" % worker, encoding="utf-8") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"], status["Groups"].strip()), ("1", "2", ""))
        for kind in ("user", "mnt"):
            self.assertNotEqual(os.readlink("/proc/%d/ns/%s" % (worker, kind)), os.readlink("/proc/%d/ns/%s" % (server.process.pid, kind)), kind)
        root = "/proc/%d/root" % worker
        # Its program is there, and nothing else of the closed home.
        home = os.path.dirname(self.mine.prefix)
        self.assertTrue(os.path.exists(root + self.mine.prefix + "/libexec/cricket/cricket-worker"))
        self.assertFalse(os.path.exists(root + self.mine.prefix + "/bin"))
        self.assertEqual(os.listdir(root + home), ["tree"])
        self.assertEqual(os.listdir(root + "/tmp"), [])
        self.go_on(a)
        self.wait(lambda: self.records(server) == [])
        self.assertEqual([n for n in glob.glob("/dev/shm/cricket-*") if owner_of(n) in range(FIRST, FIRST + 10)], [])

    def test_not_given(self):
        """Ids that are another's: one line, and workers that share the server's user."""
        self.give(FIRST + 1000000, 10)
        with self.assertRaises(AssertionError):
            self.ranged()
        (server,) = self.servers
        line = "--uid-range: the workers of all owners share the server's user: newuidmap refuses %d-%d" % (FIRST, FIRST + 9)
        self.assertEqual(self.log_of(server).count(line), 1, self.log_of(server))
        self.assertIn("usermod --add-subuids %d-%d" % (FIRST, FIRST + 9), self.log_of(server))
        a, _, worker = self.run_to_mid(server, "alice", "a")
        self.assertEqual(set(ids(worker)), {self.user.pw_uid})
        self.go_on(a)


class Cgroups(Ranged):
    """A cgroup for each worker.  The limits themselves need controllers, which a host may have given to version 1."""

    def delegated(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            points = [line.split()[4] for line in f if " - cgroup2 " in line]
        parent = os.path.join(points[0] if points else "/nowhere", "cricket-uids-%d" % os.getpid())
        try:
            os.makedirs(parent + "/server")
            os.setxattr(parent, "user.delegate", b"1")
        except OSError as error:
            self.skipTest("no cgroup of version 2 that may be written and marked: %s" % error)
        self.addCleanup(os.rmdir, parent)
        self.addCleanup(os.rmdir, parent + "/server")
        return points[0], parent

    def move(self, directory, pid=0):
        with open(directory + "/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(pid))

    def started_in(self, point, directory):
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            (own,) = [line.strip()[3:] for line in f if line.startswith("0::")]
        self.move(directory)
        try:
            return self.ranged()
        finally:
            self.move(point + own)

    def command_of(self, key, point, directory):
        """Of the drop-in, in that cgroup, as systemd would run it."""
        with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../server/daemon/systemd-before-254.conf"), encoding="utf-8") as f:
            (line,) = [line for line in f if line.startswith(key + "=-/bin/sh -c '")]
        script = line.strip()[len(key + "=-/bin/sh -c '"):-1].replace("$$", "$").replace("/sys/fs/cgroup", point)
        return subprocess.run(["/bin/sh", "-c", script], check=False, capture_output=True, text=True, preexec_fn=lambda: self.move(directory))

    def test_before_254(self):
        """systemd starts the server in the delegated cgroup itself: it moves to the one that the drop-in made there."""
        point, parent = self.delegated()
        os.rmdir(parent + "/server")
        self.assertEqual(self.command_of("ExecStartPre", point, parent).stderr, "")
        self.assertTrue(os.path.isdir(parent + "/server"))
        server = self.started_in(point, parent)
        self.wait_said(server, "cgroups: one for each worker in " + parent)
        with open(parent + "/server/cgroup.procs", encoding="utf-8") as f:
            self.assertIn(server.process.pid, map(int, f.read().split()))
        with open(parent + "/cgroup.procs", encoding="utf-8") as f:
            self.assertEqual(f.read(), "")
        a, _, worker = self.run_to_mid(server, "alice", "a")
        with open("/proc/%d/cgroup" % worker, encoding="utf-8") as f:
            self.assertIn(os.path.basename(parent) + "/worker-", f.read())
        server.kill()
        # As systemd does afterwards; without controllers there is nothing to take off, which the shell says.
        control = parent + "/.control"
        os.mkdir(control)
        said = self.command_of("ExecStopPost", point, control)
        os.rmdir(control)
        self.assertNotIn("cd:", said.stderr)
        with open(parent + "/cgroup.subtree_control", encoding="utf-8") as f:
            self.assertEqual(f.read().strip(), "")
        os.unlink(os.path.join(server.directory, "address"))
        server = self.started_in(point, parent)
        self.wait(lambda: len(self.sessions()) == 1)
        self.go_on(a)
        self.wait(lambda: [name for name in os.listdir(parent) if name.startswith("worker-")] == [])
        server.stop()

    def test_workers(self):
        point, parent = self.delegated()
        server = self.started_in(point, parent + "/server")
        self.wait_said(server, "cgroups: one for each worker in " + parent)
        a, _, alice = self.run_to_mid(server, "alice", "a")
        b, _, bob = self.run_to_mid(server, "bob", "b")
        groups = []
        for pid in (alice, bob):
            with open("/proc/%d/cgroup" % pid, encoding="utf-8") as f:
                groups += [line.strip().rsplit("/", 1)[1] for line in f if line.startswith("0::")]
        self.assertEqual(sorted(groups), sorted(name for name in os.listdir(parent) if name.startswith("worker-")))
        self.assertEqual(len(set(groups)), 2)
        # A child of another user, as no worker can have one: only its cgroup tells whose it is.
        child = subprocess.Popen(["/bin/sleep", "1000"])
        self.move(os.path.join(parent, groups[0]), child.pid)
        os.kill(alice, signal.SIGKILL)
        self.assertEqual(child.wait(60), -signal.SIGKILL)
        a.process.kill()
        self.wait(lambda: not os.path.exists(os.path.join(parent, groups[0])))
        self.go_on(b)
        self.wait(lambda: [name for name in os.listdir(parent) if name.startswith("worker-")] == [])
        server.stop()


class Messages(Whole):
    def said(self, *options, **popen):
        done = subprocess.run([self.tree.tool("cricket-server"), "--socket", os.path.join(self.dir, "s"), "--driver", "soft", *options], timeout=60,
                              capture_output=True, check=False, env={**os.environ, "STATE_DIRECTORY": self.dir, "CACHE_DIRECTORY": self.dir}, **popen)
        return done.returncode, done.stderr.decode()

    def test_bad_ranges(self):
        for text in ("200009-200000", "0-9", "999-2000", "200000", "200000-", "a-b"):
            code, said = self.said("--uid-range", text)
            self.assertEqual(code, 2)
            self.assertIn("--uid-range: '%s' is not valid: write two numbers from 1000 on, the smaller one first" % text, said)
        code, said = self.said("--uid-range", "65000-66000")
        self.assertEqual(code, 2)
        self.assertIn("which is the user nobody", said)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody else")
    def test_shared(self):
        """A server that is not root says that its workers share its user."""
        os.chmod(self.dir, 0o777)
        directory = os.path.join(self.dir, "mine")
        os.mkdir(directory)
        os.chown(directory, 54321, 54321)
        # The build may lie where only its owner looks.
        tree = runner.Tree(os.path.join(self.dir, "tree"))
        for part in ("bin", "lib/cricket", "libexec"):
            shutil.copytree(os.path.join(self.tree.prefix, part), os.path.join(tree.prefix, part), symlinks=True)
        server = subprocess.Popen([tree.tool("cricket-server"), "--socket", directory + "/s", "--driver", "soft", "--uid-range", "200000-200009"],
                                  user=54321, group=54321, extra_groups=[], stderr=subprocess.PIPE, cwd="/",
                                  env={**os.environ, "STATE_DIRECTORY": directory, "CACHE_DIRECTORY": directory, "HOME": directory})
        said = b""
        while b"listening on" not in said:
            line = server.stderr.readline()
            self.assertTrue(line, said)
            said += line
        server.terminate()
        server.wait()
        server.stderr.close()
        self.assertEqual(said.count(b"--uid-range: the workers of all owners share the server's user"), 1, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
