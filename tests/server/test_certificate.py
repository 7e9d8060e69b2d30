#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricketctl certificate: the whole life of an authority and its certificates, as openssl(1) sees it; what is refused; what a killed
process, a full disk and two processes at one time leave behind."""
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

CTL = os.environ["CKT_TEST_CTL"]
OPENSSL = shutil.which("openssl")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


@unittest.skipUnless(OPENSSL, "no openssl (Debian's package of that name)")
class Certificate(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-certificate-")
        self.ca = os.path.join(self.dir, "ca")

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def run_ctl(self, *words, **env):
        """Always in the test's directory, with a home there."""
        return subprocess.run([CTL, "certificate", *words], cwd=self.dir, env={**os.environ, "HOME": self.dir, "XDG_CONFIG_HOME": "", **env},
                              capture_output=True, text=True, timeout=60, check=False)

    def ctl(self, *words, **env):
        done = self.run_ctl(*words, "--dir", self.ca, **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, says, *words, status=1, **env):
        done = self.run_ctl(*words, "--dir", self.ca, **env)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done

    def json(self, *words):
        return json.loads(self.ctl(*words, "--json").stdout)

    def openssl(self, *words, good=True):
        done = subprocess.run([OPENSSL, *words], cwd=self.dir, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode == 0, good, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def ledger(self):
        return [json.loads(line) for line in read(self.ca, "ledger.jsonl").splitlines()]

    def fingerprint(self, path):
        """Of the certificate's key, by openssl."""
        der = subprocess.run(f"{OPENSSL} x509 -in {path} -noout -pubkey | {OPENSSL} pkey -pubin -outform DER", cwd=self.dir, shell=True,
                             capture_output=True, check=True).stdout
        return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


class Life(Certificate):
    def test_whole_life(self):
        self.ctl("init", "--permit", "cluster.example,10.0.0.0/8")
        self.assertEqual((mode(self.ca), mode(self.ca + "/ca-key.pem"), mode(self.ca + "/ledger.jsonl")), (0o700, 0o600, 0o600))
        text = self.openssl("x509", "-in", "ca/ca.pem", "-noout", "-text")
        for part in ("CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "DirName:O = Cricket", "DNS:cluster.example", "IP:10.0.0.0/255.0.0.0"):
            self.assertIn(part, text)
        self.openssl("crl", "-in", "ca/crl.pem", "-noout", "-CAfile", "ca/ca.pem")
        # A server.
        done = self.ctl("issue", "server", "GpuNode.cluster.example", "node2.cluster.example", "--address", "10.1.2.3", "--out", "node")
        self.assertEqual(done.stdout.strip(), self.fingerprint("node/cert.pem"))
        self.assertEqual((mode(f"{self.dir}/node"), mode(f"{self.dir}/node/key.pem")), (0o700, 0o600))
        for name in ("gpunode.cluster.example", "node2.cluster.example"):
            self.openssl("verify", "-CAfile", "node/ca.pem", "-purpose", "sslserver", "-verify_hostname", name, "node/cert.pem")
        self.openssl("verify", "-CAfile", "node/ca.pem", "-purpose", "sslserver", "-verify_ip", "10.1.2.3", "node/cert.pem")
        self.openssl("verify", "-CAfile", "node/ca.pem", "-verify_hostname", "other.cluster.example", "node/cert.pem", good=False)
        # A user.
        made = self.json("issue", "client", "alice", "--role", "operator", "--project", "vision,speech", "--days", "30", "--out", "a/b/alice")
        self.assertEqual((made["name"], made["role"], made["projects"], made["directory"]), ("alice", "operator", ["vision", "speech"], "a/b/alice"))
        self.openssl("verify", "-CAfile", "ca/ca.pem", "-purpose", "sslclient", "a/b/alice/cert.pem")
        self.openssl("verify", "-CAfile", "ca/ca.pem", "-purpose", "sslserver", "a/b/alice/cert.pem", good=False)
        self.assertIn("URI:cricket:user=alice, URI:cricket:role=operator, URI:cricket:project=vision, URI:cricket:project=speech",
                      self.openssl("x509", "-in", "a/b/alice/cert.pem", "-noout", "-ext", "subjectAltName"))
        key = read(self.dir, "a/b/alice/key.pem")
        self.refused("'alice' has a certificate, valid until", "issue", "client", "alice", "--out", "again")
        # Renewed: another key, the same words.  The old one stays valid until it is revoked by its serial.
        shutil.copy(f"{self.dir}/a/b/alice/cert.pem", f"{self.dir}/old.pem")
        self.ctl("renew", "alice", "--out", "a/b/alice")
        self.assertNotEqual(key, read(self.dir, "a/b/alice/key.pem"))
        self.openssl("pkey", "-in", "a/b/alice/key.pem", "-check", "-noout")
        self.assertIn("cricket:project=speech", self.openssl("x509", "-in", "a/b/alice/cert.pem", "-noout", "-text"))
        self.ctl("revoke", made["serial"])
        self.openssl("crl", "-in", "ca/crl.pem", "-noout", "-CAfile", "ca/ca.pem")
        check = ("verify", "-CAfile", "ca/ca.pem", "-crl_check", "-CRLfile", "ca/crl.pem")
        self.assertIn("certificate revoked", self.openssl(*check, "old.pem", good=False))
        self.openssl(*check, "a/b/alice/cert.pem")
        # The rest of that name; again changes nothing.
        self.assertEqual(self.json("revoke", "client", "alice", "--out", "node")["revoked"], 1)
        self.assertEqual(self.json("revoke", "alice")["revoked"], 0)
        self.assertEqual(read(self.dir, "node/crl.pem").count("BEGIN X509 CRL"), 1)
        self.openssl(*check, "a/b/alice/cert.pem", good=False)
        self.openssl(*check, "node/cert.pem")
        # Who was revoked may get another one.
        self.ctl("issue", "client", "alice", "--out", "new")
        self.openssl(*check, "new/cert.pem")
        self.assertEqual([line["event"] for line in self.ledger()], ["issue", "issue", "renew", "revoke", "revoke", "issue"])
        self.assertEqual(len({line["serial"] for line in self.ledger() if line["event"] != "revoke"}), 4)

    def test_show(self):
        self.ctl("init")
        self.ctl("issue", "client", "bob", "--role", "administrator", "--days", "10")
        self.ctl("issue", "server", "node")
        shown = self.json("show")["certificates"]
        self.assertEqual([(one["kind"], one["name"], one["revoked"]) for one in shown], [("client", "bob", False), ("server", "node", False)])
        self.assertIn(shown[0]["days_left"], (9, 10))
        self.assertEqual(shown[0]["fingerprint"], self.fingerprint("bob/cert.pem"))
        of_file = self.json("show", "bob/cert.pem")["certificates"][0]
        for member in ("kind", "name", "serial", "fingerprint", "not_after", "role", "projects"):
            self.assertEqual(of_file[member], shown[0][member])
        self.assertEqual(self.json("show", "ca/ca.pem")["certificates"][0]["kind"], "ca")
        self.ctl("revoke", "bob")
        text = self.ctl("show", shown[0]["serial"]).stdout
        self.assertRegex(text, r"client  bob +revoked +(9|10) .* administrator")
        self.refused("no certificate of 'carol' was issued", "show", "carol")
        self.refused("name a certificate in PEM", "show", "bob/key.pem")
        self.refused("No such file", "show", "./none")

    def test_names(self):
        """What is no name, and nothing is written for it."""
        self.ctl("init")
        for name, says in (("*.example", "wildcards"), ("gpu\u00fc.example", "xn--"), ("a..b", "write a host name"), ("", "write a host name"),
                           ("a.", "write a host name"), ("-a", "unknown option"), ("a_b", "write a host name"), ("a b", "write a host name"),
                           ("10.0.0.1", "--address"), ("fd00::1", "--address"), ("a," * 3, "write a host name"), ("x" * 64, "write a host name"),
                           ("a." * 126 + "ab", "at most 253"), ("a." * 200, "at most 253"), ("\n", "write a host name")):
            with self.subTest(name=name):
                self.refused(says, "issue", "server", "good", name, status=2)
        for name in ("Alice", "", ".", "..", ".a", "a/b", "../a", "a b", "a\n", "a" * 33, "\u00e4", "a=b", "a,URI:cricket:role=administrator"):
            with self.subTest(name=name):
                self.refused("certificate issue client", "issue", "client", name, status=2)
        for words, says in ((("client", "a", "--role", "root"), "--role"), (("client", "a", "--role", "operator"), "--project"),
                            (("client", "a", "--project", "A"), "--project"), (("client", "a", "--project", ",".join("abcdefghi")), "up to 8"),
                            (("client", "a", "--address", "10.0.0.1"), "--address"), (("client", "a", "b"), "one name"),
                            (("server", "a", "--address", "node"), "--address"), (("server", "a", "--role", "user"), "a server has none"),
                            (("client", "a", "--days", "0"), "--days"), (("client", "a", "--days", "1e3"), "--days"),
                            (("client", "a", "--days", "7301"), "--days"), (("person", "a"), "issue server NAME")):
            with self.subTest(words=words):
                self.refused(says, "issue", *words, status=2)
        self.refused("the authority itself is valid for", "issue", "client", "a", "--days", "7000")
        self.assertEqual(self.ledger(), [])
        self.assertEqual(os.listdir(self.dir), ["ca"])

    def test_permitted(self):
        """The authority signs for what it was made for, and nobody believes it for more."""
        for permit, good, bad in (("cluster.example", ("cluster.example",), ("cluster.example2",)), ("10.0.0.0/8", ("--address", "10.0.0.1"), ("node",)),
                                  ("cluster.example", ("a.cluster.example",), ("c.cluster.example", "--address", "10.0.0.1")),
                                  ("cluster.example,10.0.0.0/8", ("b.cluster.example", "--address", "10.255.0.1"),
                                   ("c.cluster.example", "--address", "11.0.0.1")),
                                  ("fd00::/16,n.example", ("n.example", "--address", "fd00::1"), ("m.n.example", "--address", "fe80::1"))):
            with self.subTest(permit=permit, bad=bad):
                shutil.rmtree(self.ca, ignore_errors=True)
                shutil.rmtree(f"{self.dir}/out", ignore_errors=True)
                self.ctl("init", "--permit", permit)
                if good[0] != "--address":
                    self.ctl("issue", "server", *good, "--out", "out")
                    self.openssl("verify", "-CAfile", "ca/ca.pem", "-purpose", "sslserver", "out/cert.pem")
                self.refused("made with --permit for other names", "issue", "server", *bad, "--out", "out2")
                # Users have no host name.
                self.ctl("issue", "client", "a.b", "--out", "out3")
                self.openssl("verify", "-CAfile", "ca/ca.pem", "-purpose", "sslclient", "out3/cert.pem")
                shutil.rmtree(f"{self.dir}/out3")
                self.assertFalse(os.path.exists(f"{self.dir}/out2"))
        shutil.rmtree(self.ca)
        for permit in ("*", "a b", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "," * 3, "x" * 300):
            self.refused("--permit", "init", "--permit", permit)
        self.assertFalse(os.path.exists(self.ca))

    def test_trust(self):
        self.ctl("init")
        fingerprint = self.ctl("issue", "server", "node").stdout.strip()
        known = f"{self.dir}/.config/cricket/known_servers"
        done = self.run_ctl("trust", "Node:7350", "--fingerprint", fingerprint)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(read(known), rf"^node {re.escape(fingerprint)} \d{{4}}-\d\d-\d\d\n$")
        self.assertEqual(mode(known), 0o600)
        for host in ("[fd00::1]:7350", "fd00::1", "10.0.0.1:1"):
            self.assertEqual(self.run_ctl("trust", host, "--fingerprint", fingerprint).returncode, 0)
        self.assertEqual([line.split()[0] for line in read(known).splitlines()], ["node", "fd00::1", "10.0.0.1"])
        for host, word in (("node", "SHA256:x"), ("node", fingerprint + "="), ("node", fingerprint[:-1]), (":7350", fingerprint), ("x" * 300, fingerprint)):
            self.assertEqual(self.run_ctl("trust", host, "--fingerprint", word).returncode, 2)
        self.assertEqual(self.run_ctl("trust", "a b", "--fingerprint", fingerprint).returncode, 1)

    def test_expired(self):
        """An authority that ends is named, and no certificate outlives it."""
        self.ctl("init", "--days", "1")
        self.refused("the authority itself is valid for", "issue", "client", "a")
        self.assertRegex(self.json("show", "ca/ca.pem")["certificates"][0]["days_left"].__repr__(), r"^[01]$")


class Broken(Certificate):
    """What is wrong, half done or done twice."""

    def test_modes(self):
        self.refused("there is no certificate authority; make one with cricketctl certificate init", "issue", "client", "a")
        self.ctl("init")
        before = read(self.ca, "ca-key.pem")
        self.refused("there is something already", "init")
        self.assertEqual(before, read(self.ca, "ca-key.pem"))
        os.chmod(f"{self.ca}/ca-key.pem", 0o640)
        self.refused("run chmod 600 on it", "issue", "client", "a")
        os.chmod(f"{self.ca}/ca-key.pem", 0o600)
        os.chmod(self.ca, 0o770)
        self.refused("run chmod 700 on it", "issue", "client", "a")
        os.chmod(self.ca, 0o700)
        os.mkdir(f"{self.dir}/open")
        os.chmod(f"{self.dir}/open", 0o777)
        self.refused("run chmod go-w on it", "issue", "client", "a", "--out", "open")
        os.chmod(f"{self.dir}/open", 0o755)
        self.ctl("issue", "client", "a", "--out", "open")
        self.refused("it is there already", "issue", "client", "b", "--out", "open")
        # The key of another authority.
        other = os.path.join(self.dir, "other")
        self.assertEqual(self.run_ctl("init", "--dir", other).returncode, 0)
        shutil.copy(f"{other}/ca-key.pem", f"{self.ca}/ca-key.pem")
        self.refused("are not a certificate and its key", "issue", "client", "c")
        for name in ("ca-key.pem", "ca.pem", "ledger.jsonl"):
            os.rename(f"{other}/{name}", f"{other}/x")
            done = self.run_ctl("show", "--dir", other)
            self.assertEqual(done.returncode, 1)
            self.assertIn(name, done.stderr)
            os.symlink("x", f"{other}/{name}")
            self.assertEqual(self.run_ctl("show", "--dir", other).returncode, 1)
            os.rename(f"{other}/x", f"{other}/{name}")

    def test_ledger(self):
        self.ctl("init")
        self.ctl("issue", "client", "a")
        path = f"{self.ca}/ledger.jsonl"
        whole = read(path)
        # Of a process that was killed: the line counts as not written.
        with open(path, "a", encoding="utf-8") as f:
            f.write('{"event":"issue","kind":"client","na')
        self.ctl("issue", "client", "b")
        self.assertEqual([line["name"] for line in self.ledger()], ["a", "b"])
        for line in ("nonsense\n", "[]\n", '{"a":1,"a":2}\n', "\n"):
            with open(path, "w", encoding="utf-8") as f:
                f.write(line + whole)
            self.refused("ledger.jsonl:1: the line is not a JSON object", "issue", "client", "c")
        # Types that nobody of ours writes.
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"event":"issue","kind":7,"name":[],"serial":{},"not_after":"x","projects":3,"names":[1,null]}\n' + whole)
        self.ctl("show")
        self.refused("no certificate of 'zoe' was issued", "renew", "zoe")

    def test_two_kinds(self):
        self.ctl("init")
        self.ctl("issue", "client", "node", "--out", "c")
        self.ctl("issue", "server", "node", "--out", "s")
        self.refused("'node' is a server and a client", "renew", "node", "--out", "s")
        self.refused("'node' is a server and a client", "revoke", "node")
        self.ctl("renew", "server", "node", "--out", "s")
        self.assertEqual(self.json("revoke", "server", "node")["revoked"], 2)
        self.openssl("verify", "-CAfile", "ca/ca.pem", "-crl_check", "-CRLfile", "ca/crl.pem", "c/cert.pem")
        self.refused("write server NAME or client NAME", "revoke", "host", "node", status=2)

    def test_killed(self):
        """At each point: nothing half, and the same again succeeds."""
        done = self.run_ctl("init", "--dir", self.ca, CRICKET_FAULT="230")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertFalse(os.path.exists(self.ca))
        self.ctl("init")
        for point, lines in (("230", 0), ("231", 1)):
            done = self.run_ctl("issue", "client", "u" + point, "--dir", self.ca, CRICKET_FAULT=point)
            self.assertEqual(done.returncode, -signal.SIGKILL)
            self.assertFalse(os.path.exists(f"{self.dir}/u{point}"))
            self.assertEqual(len(self.ledger()), lines)
        self.ctl("issue", "client", "u230")
        # The ledger knows one that nobody has: renew makes another, and revoke takes both back.
        self.refused("use cricketctl certificate renew", "issue", "client", "u231")
        self.ctl("renew", "u231")
        self.openssl("verify", "-CAfile", "ca/ca.pem", "u231/cert.pem")
        self.assertEqual(self.json("revoke", "u231")["revoked"], 2)
        # Between two files of a directory that has both: the same again mends it.
        for point in ("230", "231", "232"):
            done = self.run_ctl("renew", "u230", "--dir", self.ca, CRICKET_FAULT=point)
            self.assertEqual(done.returncode, -signal.SIGKILL)
        self.ctl("renew", "u230")
        self.check_pair("u230")
        self.assertEqual(sorted(os.listdir(f"{self.dir}/u230")), ["ca.pem", "cert.pem", "key.pem"])
        # A revocation that is in the ledger is in the next list.
        done = self.run_ctl("revoke", "u230", "--dir", self.ca, CRICKET_FAULT="231")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.ctl("revoke", "u230")
        self.openssl("verify", "-CAfile", "ca/ca.pem", "-crl_check", "-CRLfile", "ca/crl.pem", "u230/cert.pem", good=False)

    def check_pair(self, name):
        public = self.openssl("pkey", "-in", f"{name}/key.pem", "-pubout")
        self.assertEqual(public, self.openssl("x509", "-in", f"{name}/cert.pem", "-noout", "-pubkey"))

    def test_fails(self):
        """The same points as errors: all that was written goes."""
        self.refused("stopped by CRICKET_FAULT", "init", CRICKET_FAULT="fail:230")
        self.assertEqual(os.listdir(self.dir), [])
        self.ctl("init")
        for point in ("230", "231"):
            self.refused("", "issue", "client", "u" + point, CRICKET_FAULT="fail:" + point)
            self.assertEqual(os.listdir(self.dir), ["ca"])

    @unittest.skipUnless(os.getuid() == 0, "needs root, for a small disk")
    def test_full_disk(self):
        script = """mount -t tmpfs -o size=64k none "$1" && cd "$1" && "$2" certificate init --dir ca && dd if=/dev/zero of=fill bs=1k 2>/dev/null
                    "$2" certificate issue client a --dir ca; echo "issue $?"; ls -A . a ca 2>/dev/null; wc -c <ca/ledger.jsonl
                    "$2" certificate revoke --dir ca; echo "revoke $?"; rm fill; "$2" certificate issue client a --dir ca; echo "again $?"
                    "$2" certificate init --dir ca2; echo "init $?"; ls -A ca"""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, "bash", self.dir, CTL], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode and "mount" in done.stderr:
            self.skipTest("no mount here")
        self.assertRegex(done.stderr, r"No space left on device; make room there")
        self.assertIn("issue 1\n", done.stdout)
        self.assertIn("revoke 1\n", done.stdout)
        self.assertIn("again 0\n", done.stdout)
        self.assertNotIn(".new", done.stdout)
        # Neither a directory of the certificate nor a line of it.
        self.assertRegex(done.stdout, r"issue 1\n\.:\nca\nfill\n\nca:\nca-key.pem\nca.pem\ncrl.pem\nledger.jsonl\n0\n")

    def test_at_one_time(self):
        self.ctl("init")

        def start(*words, ca=self.ca):
            return subprocess.Popen([CTL, "certificate", *words, "--dir", ca], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        several = [start("issue", "client", f"u{i}") for i in range(8)] + [start("issue", "client", "same", "--out", f"same{i}") for i in range(4)]
        errors = [process.communicate(timeout=60)[1] for process in several]
        self.assertEqual([process.returncode for process in several[:8]], [0] * 8, errors)
        self.assertEqual(sorted(process.returncode for process in several[8:]), [0, 1, 1, 1])
        self.assertEqual(len(self.ledger()), 9)
        self.assertEqual(len({line["serial"] for line in self.ledger()}), 9)
        for i in range(8):
            self.check_pair(f"u{i}")
        several = [start("init", ca=os.path.join(self.dir, "new")) for i in range(4)]
        for process in several:
            process.communicate(timeout=60)
        self.assertEqual(sorted(process.returncode for process in several), [0, 1, 1, 1])
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name.startswith("new")), ["new"])


if __name__ == "__main__":
    unittest.main()
