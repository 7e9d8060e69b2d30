#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas of automatic images over TLS, and those for which a key vouches."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from chains import Chains  # noqa: E402
from test_tls import Pki, tls_children  # noqa: E402
from whole import runner  # noqa: E402

LEASE = "2s"
# Certificates of a user are those of a TLS client.
CLIENT = "\nextendedKeyUsage=clientAuth"
ADMINISTRATOR = "URI:cricket:user=gpu1,URI:cricket:role=administrator" + CLIENT


class ReplicaTls(Chains):
    def replicating(self, address, *options, env=None):
        return self.saving("first", "--replicate", address, "--replicate-lease", LEASE, *options, env=env)

    def executed(self, taker, name):
        try:
            return int(self.state(taker, name).split("executed ")[1].split()[0])
        except FileNotFoundError:
            return -1

    def replicated(self, taker):
        """Waits until the second server has all that the session has done."""
        self.saved(taker)
        self.wait(lambda: self.executed(taker, "second") >= self.sessions(taker.server)[taker.session]["executed"])

    def problem(self, taker):
        image = self.sessions(taker.server)[taker.session] or {}
        return image.get("problem") or ""

    # ---- Keys

    def test_keys(self):
        """The second server has the key, too: the replica comes back there, encrypted as it is; a changed one does not."""
        key = self.key()
        second = self.saving("second", "--image-key", key)
        first = self.replicating(second.address, "--image-key", key, "--auto-encrypt")
        # The other one is told why, once the lease is over; until then it must not give up.
        taker, other = (self.taker(first, CRICKET_STANDBY=second.address, CRICKET_RECONNECT_TIMEOUT=seconds) for seconds in ("60", "20"))
        for one in (taker, other):
            self.replicated(one)
        with open(os.path.join(self.directory(taker, "second"), self.state(taker, "second").split("\nimage ")[1].split()[0], "manifest"), "rb") as f:
            self.assertEqual(f.read(4), b"CkE1")
        self.assertIn("\nreplica 2000\n", self.state(taker, "second"))
        with self.stopped(taker, other):
            self.kill_all(first)
            with open(os.path.join(self.directory(other, "second"), "state"), "r+", encoding="utf-8") as f:
                text = f.read()
                f.seek(0)
                f.write(text.replace("\nowner ", "\nowner 1", 1))
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(set(self.sessions(second)), {taker.session})
        self.wait(lambda: "\nreplica" not in self.state(taker, "second"))
        (said,) = self.lost(other)
        self.assertIn("its state was changed", said)

    def test_other_keys(self):
        """A second server without the key, with another one, or with one where the first has none, keeps no replica, and says why."""
        key = self.key()
        for there, here, wanted in (([], ["--image-key", key], "start it with the same --image-key"),
                                    (["--image-key", self.key("other")], ["--image-key", key], "no key of --image-key vouches"),
                                    (["--image-key", key], [], "no key of --image-key vouches")):
            second = self.saving("second", *there)
            first = self.replicating(second.address, *here)
            taker = self.taker(first)
            with self.subTest(wanted):
                self.wait(lambda taker=taker, wanted=wanted: wanted in self.problem(taker))
                self.assertEqual(self.executed(taker, "second"), -1)
                # The session does not mind.
                self.assertEqual(taker.ask("check", 7), 0)
            for server in (first, second):
                self.kill_all(server)
            for name in ("first", "second"):
                shutil.rmtree(self.images(name), ignore_errors=True)

    # ---- Metrics

    def samples(self, server, name):
        """{session, or "": value} of that metric."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(os.path.join(os.path.dirname(server.socket), "metrics"))
            sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: sock.recv(1 << 16), b"")).decode()
        found = re.findall("^%s(?:{session=\"([0-9a-f]*)\"})? (.*)$" % name, text, re.MULTILINE)
        return {session: float(value) for session, value in found}

    def test_metrics(self):
        """The first server tells how far behind the replica is and how long its lease runs, the second one what it holds."""
        def options(name):
            return ["--metrics", "unix:" + os.path.join(self.dir, name, "metrics")]
        user, administrator = self.token("alice"), self.token("bob", "--role", "administrator")
        second = self.saving("second", "--tokens", self.tokens, *options("second"))
        self.assertEqual(self.samples(second, "cricket_replicas_held"), {"": 0})
        first = self.saving("first", "--replicate", second.address, "--replicate-lease", "1h", *options("first"))
        taker = self.taker(first)
        self.replicated(taker)
        self.wait(lambda: self.samples(first, "cricket_replica_behind_commands") == {taker.session: 0})
        # None before the first renewal has come back.
        self.wait(lambda: 2000 < self.samples(first, "cricket_replica_lease_seconds").get(taker.session, 0) <= 2880)
        self.wait(lambda: self.samples(second, "cricket_replicas_held") == {"": 1})
        self.assertGreaterEqual(self.samples(second, "cricket_replica_held_bytes")[""], 4 << 20)
        self.assertEqual(self.samples(second, "cricket_replica_behind_commands"), {})
        # So does ps, at both; the first renewal may be on its way.
        self.wait(lambda: self.sessions(first)[taker.session]["replica"]["when"])
        replica = self.sessions(first)[taker.session]["replica"]
        self.assertEqual((replica["server"], replica["state"], replica["behind"], replica["problem"]), (second.address, "whole", 0, None))
        self.assertEqual(replica["executed"], self.executed(taker, "second"))
        self.assertTrue(2000 < replica["lease_s"] <= 2880 and replica["when"] and replica["renewed_s"] >= 0)
        (held,) = json.loads(self.ctl(second, "ps", "--json"))["replicas"]
        self.assertEqual((held["session"], held["executed"]), (taker.session, replica["executed"]))
        self.assertTrue(2800 < held["lease_s"] <= 3600 and held["bytes"] >= 4 << 20)
        self.assertNotIn("replicas", json.loads(self.ctl(first, "ps", "--json")))
        self.assertIn("replica at %s: up to command %d, 0 behind" % (second.address, replica["executed"]), self.ctl(first, "ps"))
        self.assertIn(taker.session + "  replica of another server's session", self.ctl(second, "ps"))
        # What it holds is told to administrators alone.
        for token, wanted in ((administrator, [taker.session]), (user, [])):
            done = subprocess.run([self.tree.tool("cricketctl"), "--server", second.tcp, "ps", "--json"], env={**os.environ, "CRICKET_TOKEN_FILE": token},
                                  capture_output=True, check=True, timeout=60)
            self.assertEqual([one["session"] for one in json.loads(done.stdout).get("replicas", [])], wanted)
        # What it has not reached for a while.
        self.kill_all(second)
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: self.sessions(first) and self.samples(first, "cricket_replica_behind_commands").get(taker.session, 0) > 0)

    # ---- TLS

    def pki(self):
        pki = Pki(os.path.join(self.dir, "pki"))
        certificate, key = pki.issue("server")
        return pki, ["--tls-certificate", certificate, "--tls-key", key, "--tls-ca", pki.ca]

    def environment(self, pki, name, names, ca=None):
        certificate, key = pki.issue(name, names)
        return {"CRICKET_TLS_CA": ca or pki.ca, "CRICKET_TLS_CERTIFICATE": certificate, "CRICKET_TLS_KEY": key}

    def test_certificate(self):
        """An administrator's certificate is the right to send replicas, without a token; the session goes on there over TLS."""
        pki, options = self.pki()
        second = self.saving("second", *options)
        first = self.replicating(second.tcp, env=self.environment(pki, "gpu1", ADMINISTRATOR))
        client = self.environment(pki, "client", "URI:cricket:user=alice" + CLIENT)
        taker = self.taker(first, CRICKET_STANDBY=second.tcp, CRICKET_RECONNECT_TIMEOUT="60", **client)
        self.replicated(taker)
        # Of the connection that renews the lease, which may be made again.
        self.wait(lambda: tls_children(second))
        self.kill_all(first)
        self.assertEqual(taker.ask("check", 7), 0)
        # Null where the worker did not answer in time.
        self.wait(lambda: [s["transport"] for s in runner.sessions_of(self.tree, second)] == ["tls"])
        self.assertEqual(set(self.sessions(second)), {taker.session})

    def test_refused(self):
        """Another authority's server, no certificate, and a user's: no replica, and ps says why."""
        pki, options = self.pki()
        other = Pki(os.path.join(self.dir, "other"), "other")
        second = self.saving("second", *options)
        cases = (({**self.environment(pki, "a", ADMINISTRATOR), "CRICKET_TLS_CA": other.ca}, "its certificate is not accepted"),
                 ({"CRICKET_TLS_CA": pki.ca}, "it does not accept this client"),
                 (self.environment(pki, "b", "URI:cricket:user=bob" + CLIENT), "only an administrator"))
        for env, wanted in cases:
            first = self.replicating(second.tcp, env=env)
            taker = self.taker(first)
            with self.subTest(wanted):
                self.wait(lambda taker=taker, wanted=wanted: wanted in self.problem(taker))
                self.assertEqual(self.executed(taker, "second"), -1)
            with self.stopped(taker):
                self.kill_all(first)
            taker.process.kill()
            shutil.rmtree(self.images("first"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
