#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A network that is cut, delayed and healed under a program: two network namespaces, the soft GPU, and the same bits at the end.

--cuts N: how often (20).  It needs root, ip and namespaces, and is skipped by name without them."""
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
CUTS = 20
if "--cuts" in sys.argv:
    at = sys.argv.index("--cuts")
    CUTS = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
from slow_link import NAME as SLOW, SlowLink  # noqa: E402
from whole import PROGRAM, Whole, runner  # noqa: E402

NEWNET = 0x40000000
HERE_IP, THERE_IP, PORT = "10.99.0.1", "10.99.0.2", 7350
STEPS = "20000"
CUT_S = 0.3  # so long that data is lost, so short that a test of few seconds has many
DELAY_S = 0.03  # of each packet, each way
KEEP, OF = 2, 3  # so many packets of so many arrive


def run(*words):
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)


def works(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def enter(pid):
    """The network namespace of that process, for the calling thread."""
    with open("/proc/%d/ns/net" % pid, "rb") as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Network(Whole):
    def setUp(self):
        super().setUp()
        # pylint: disable=consider-using-with
        self.far = subprocess.Popen(["unshare", "-n", "sleep", "1000000"], stdin=subprocess.DEVNULL)
        self.addCleanup(self.far.wait)
        self.addCleanup(self.far.kill)
        self.wait(lambda: os.readlink("/proc/%d/ns/net" % self.far.pid) != os.readlink("/proc/self/ns/net"))
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(self.far.pid))
        run("ip", "addr", "add", HERE_IP + "/24", "dev", "near")
        run("ip", "link", "set", "near", "up")
        for words in (("link", "set", "lo", "up"), ("addr", "add", THERE_IP + "/24", "dev", "far"), ("link", "set", "far", "up")):
            run("nsenter", "-t", str(self.far.pid), "-n", "ip", *words)
        self.server_far = runner.Server(self.tree, os.path.join(self.dir, "server"), "soft", ("--listen", "%s:%d" % (THERE_IP, PORT), "--insecure", "--insecure-plaintext"),
                                        preexec_fn=lambda: enter(self.far.pid))
        self.servers.append(self.server_far)

    def start_program(self, name):
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        environment = runner.clean_environment()
        environment.update({"HOME": self.home})
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", "%s:%d" % (THERE_IP, PORT), PROGRAM, "1", STEPS], environment)
        self.programs.append(program)
        return program

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.server_far.process.pid))

    def ways(self):
        """What happens to the network, by name: (begin, end); only what this kernel can."""
        def command(*words):
            return lambda: run(*words)

        found = {"cut": (command("ip", "link", "set", "near", "down"), command("ip", "link", "set", "near", "up"))}
        rule = ("OUTPUT", "-d", THERE_IP, "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
        if shutil.which("iptables") and works("iptables", "-A", *rule):
            run("iptables", "-D", *rule)
            found["reset"] = command("iptables", "-A", *rule), command("iptables", "-D", *rule)
        netem, healed = ("tc", "qdisc", "add", "dev", "near", "root", "netem"), ("tc", "qdisc", "del", "dev", "near", "root")
        self.slow = None
        if shutil.which("tc") and works(*netem, "delay", "%dms" % (DELAY_S * 1000)):
            run(*healed)
            found["delayed"] = command(*netem, "delay", "%dms" % (DELAY_S * 1000)), command(*healed)
            found["lossy"] = command(*netem, "loss", "%d%%" % (100 - 100 * KEEP // OF)), command(*healed)
        elif self.open_slow():
            found["delayed"] = lambda: self.route(DELAY_S, 1, 1), self.route_back
            found["lossy"] = lambda: self.route(0.0, KEEP, OF), self.route_back
        return found

    def open_slow(self):
        """False: no TUN devices here."""
        try:
            self.slow = SlowLink(lambda: enter(self.far.pid))
        except OSError as error:
            print("no delays and losses: neither netem nor TUN devices (%s)" % error)
            return False
        run("ip", "link", "set", SLOW, "up")
        run("nsenter", "-t", str(self.far.pid), "-n", "ip", "link", "set", SLOW, "up")
        return True

    def route(self, delay_s, keep, of):
        """Packets of both sides go over the slow link, as long as that route is there."""
        self.slow.delay_s, self.slow.keep, self.slow.of = delay_s, keep, of
        run("ip", "route", "add", THERE_IP, "dev", SLOW, "src", HERE_IP)
        run("nsenter", "-t", str(self.far.pid), "-n", "ip", "route", "add", HERE_IP, "dev", SLOW, "src", THERE_IP)

    def route_back(self):
        run("ip", "route", "del", THERE_IP, "dev", SLOW)
        run("nsenter", "-t", str(self.far.pid), "-n", "ip", "route", "del", HERE_IP, "dev", SLOW)

    def disturb(self, way):
        begin, end = way
        begin()
        time.sleep(CUT_S)
        end()
        time.sleep(CUT_S)

    def check_slow_link(self):
        """What stands in for netem: connections go over it, late and with losses, and over the other link again."""
        before = 0
        for delay_s, keep, of in ((DELAY_S, 1, 1), (0.0, KEEP, OF)):
            self.route(delay_s, keep, of)
            with socket.create_connection((THERE_IP, PORT), 60) as connection:
                # Its greeting.
                self.assertTrue(connection.recv(1))
            # SYN, ACK and FIN: with losses, one of three is lost.
            self.wait(lambda: self.slow.carried >= before + 3 and (self.slow.lost > 0 or keep == of))
            if keep == of:
                self.assertEqual(self.slow.lost, 0)
            self.route_back()
            before = self.slow.carried
        # What that connection still sends is not counted as if it were this one's.
        self.slow.keep = 0
        with socket.create_connection((THERE_IP, PORT), 60) as connection:
            self.assertTrue(connection.recv(1))

    def test_healed(self):
        """Programs that begin while all is well go on over what comes then."""
        expected = self.start_program("expected").wait(60)
        self.assertEqual(expected[0], 0, expected)
        self.wait(lambda: not self.server_far.workers())
        before, ways, done, programs, over = self.descriptors(), self.ways(), {}, 0, 0
        if self.slow:
            self.check_slow_link()
        while sum(done.values()) < CUTS:
            program = self.start_program("p%d" % programs)
            programs += 1
            self.wait(lambda program=program: program.process.poll() is not None or
                      any(s["pid"] == program.process.pid and s["state"] == "running" for s in runner.sessions_of_socket(self.tree, self.server_far)))
            for number in range(5):
                if number and program.process.poll() is not None:
                    break
                name = sorted(ways)[sum(done.values()) % len(ways)]
                over += program.process.poll() is None
                self.disturb(ways[name])
                done[name] = done.get(name, 0) + 1
            code, out, err = program.wait(120)
            self.assertEqual((code, out), (0, expected[1]), err)
        print("%s; %d programs, %d times under one" % (", ".join("%s %d times" % item for item in sorted(done.items())), programs, over))
        self.assertGreater(over, 0)
        if self.slow:
            print("over the slow link: %d packets carried, %d lost" % (self.slow.carried, self.slow.lost))
        # Nothing is left: no session, no worker, no descriptor.
        self.wait(lambda: not runner.sessions_of_socket(self.tree, self.server_far) and not self.server_far.workers())
        self.wait(lambda: self.descriptors() <= before)


def in_namespace():
    """This program again in a network namespace of its own; 77: that cannot be had."""
    if os.environ.get("CKT_TEST_IN_NAMESPACE"):
        return
    missing = [tool for tool in ("ip", "unshare", "nsenter") if not shutil.which(tool)]
    if os.geteuid() or missing or not works("unshare", "-n", "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"):
        print("network cuts are left out: they need root, ip, unshare, nsenter and virtual Ethernet (missing: %s)" % ", ".join(missing or ["the right"]))
        sys.exit(77)
    os.environ["CKT_TEST_IN_NAMESPACE"] = "1"
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os.execvp("unshare", ["unshare", "-n", sys.executable, os.path.realpath(__file__), "--cuts", str(CUTS), *sys.argv[1:]])


if __name__ == "__main__":
    in_namespace()
    unittest.main(verbosity=2)
