#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TLS on the server's TCP connections: programs, cricketctl, who is refused and why, and connections that are slow, cut or killed."""
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

CALL = struct.pack(">10I", 5, 0, 2, 0x20434b00, 1, 0, 7, 0, 0, 0)
REPLY = struct.pack(">5I", 5, 1, 0, 0, 8) + b"STARTTLS" + struct.pack(">I", 0)


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Pki:
    """An authority and what it issues, in a directory."""

    def __init__(self, directory, name="authority"):
        os.makedirs(directory)
        self.directory = directory
        self.ca = self.path("ca.pem")
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", self.path("ca.key"), "-out", self.ca, "-days", "30", "-subj", "/CN=" + name,
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def path(self, name):
        return os.path.join(self.directory, name)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1", days="30", kind=("ed25519",)):
        """(certificate, key)"""
        certificate, key, request, extensions = (self.path(name + end) for end in (".pem", ".key", ".csr", ".ext"))
        with open(extensions, "w", encoding="utf-8") as f:
            f.write("subjectAltName=%s\n" % names)
        openssl("req", "-newkey", *kind, "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial", "-days", days, "-extfile", extensions,
                "-out", certificate)
        os.chmod(key, 0o600)
        return certificate, key


def tls_children(server):
    """The processes that carry connections of the server's."""
    keeper = [pid for pid in runner.children_of(server.process.pid) if runner.keeps_key(pid)]
    return [pid for parent in keeper for pid in runner.children_of(parent)]


class Tls(Whole):
    def setUp(self):
        super().setUp()
        self.pki = Pki(os.path.join(self.dir, "pki"))
        self.certificate, self.key = self.pki.issue("server")
        self.set_environment(CRICKET_TLS_CA=self.pki.ca)

    def set_environment(self, **env):
        """Of cricketctl, which the test's own helpers start."""
        for name, value in env.items():
            self.addCleanup(lambda name=name, old=os.environ.get(name): os.environ.pop(name) if old is None else os.environ.update({name: old}))
            os.environ[name] = value

    def secure(self, name, *options, certificate=None, key=None):
        return self.server(name, "--tls-certificate", certificate or self.certificate, "--tls-key", key or self.key, *options)

    def child(self, server):
        """The only process that carries a connection, once cricketctl's are gone."""
        self.wait(lambda: len(tls_children(server)) == 1)
        return tls_children(server)[0]

    def run_program(self, server, **env):
        """(exit status, stdout, what the client says)"""
        done = subprocess.run([self.tree.tool("cricket-run"), "--server", server if isinstance(server, str) else server.address, PROGRAM],
                              env={**runner.clean_environment(), "HOME": self.home, **env}, capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    def refused(self, server, *words, **env):
        code, _, err = self.run_program(server, **env)
        self.assertNotEqual(code, 0)
        for word in words:
            self.assertIn(word, err)

    def test_program(self):
        """Over TLS a program gives what it gives in the clear, and both ends say what they talk over."""
        expected = self.expected()
        server = self.secure("one")
        program, session = self.start(server, CRICKET_TLS_CA=self.pki.ca)
        self.assertEqual(json.loads(self.ctl(server, "stats", session, "--json"))["transport"], "tls")
        self.assertEqual(self.finish(program), (expected, ""))
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        self.wait(lambda: tls_children(server) == [])

    def test_first_contact(self):
        """Without an authority a client remembers the server's key, and then takes no other key and no clear text."""
        server = self.secure("one")
        self.assertEqual(self.run_program(server, CRICKET_TLS_FIRST="accept")[0], 0)
        self.assertEqual(self.run_program(server, CRICKET_TLS_FIRST="refuse")[0], 0)
        other = self.secure("other", **dict(zip(("certificate", "key"), self.pki.issue("other"))))
        self.refused(other, "SHA256:", CRICKET_TLS_FIRST="accept")
        self.refused(self.server("plain"), "the server 127.0.0.1 offers no TLS, and it did before", "known_servers")

    def test_certificates(self):
        """A client goes on with its authority's servers alone, and says what is wrong with another one."""
        server = self.secure("one")
        other = Pki(os.path.join(self.dir, "other"), "other")
        self.refused(server, "the server 127.0.0.1: its certificate is not accepted: ", CRICKET_TLS_CA=other.ca)
        self.refused(server, "SHA256:", "cricketctl certificate trust")
        port = server.address.rpartition(":")[2]
        self.assertEqual(self.run_program("localhost:" + port, CRICKET_TLS_CA=self.pki.ca)[0], 0)
        named = self.secure("named", **dict(zip(("certificate", "key"), self.pki.issue("named", "DNS:elsewhere.example"))))
        self.refused(named, "its certificate is not accepted: ", "mismatch", CRICKET_TLS_CA=self.pki.ca)
        expired = self.secure("expired", **dict(zip(("certificate", "key"), self.pki.issue("expired", days="-1"))))
        self.refused(expired, "its certificate is not accepted: certificate has expired", CRICKET_TLS_CA=self.pki.ca)
        code, _, err = self.may_fail(expired, "ps")
        self.assertNotEqual(code, 0)
        self.assertIn("certificate has expired", err)
        self.refused(server, "nowhere.pem", CRICKET_TLS_CA=os.path.join(self.dir, "nowhere.pem"))

    def test_clients(self):
        """With --tls-ca a client must show a certificate of that authority."""
        server = self.secure("one", "--tls-ca", self.pki.ca)
        certificate, key = self.pki.issue("client")
        self.refused(server, "it does not accept this client's certificate", "CRICKET_TLS_CERTIFICATE", CRICKET_TLS_CA=self.pki.ca)
        other, other_key = Pki(os.path.join(self.dir, "other"), "other").issue("client")
        self.refused(server, "it does not accept this client's certificate", CRICKET_TLS_CA=self.pki.ca, CRICKET_TLS_CERTIFICATE=other,
                     CRICKET_TLS_KEY=other_key)
        self.assertEqual(self.run_program(server, CRICKET_TLS_CA=self.pki.ca, CRICKET_TLS_CERTIFICATE=certificate, CRICKET_TLS_KEY=key)[0], 0)
        os.chmod(key, 0o644)
        self.refused(server, "others can read the key", CRICKET_TLS_CA=self.pki.ca, CRICKET_TLS_CERTIFICATE=certificate, CRICKET_TLS_KEY=key)
        # What the authority revoked is read without a restart.
        os.chmod(key, 0o600)
        self.revoke(certificate)
        self.refused(server, "it does not accept this client's certificate", "revoked", CRICKET_TLS_CA=self.pki.ca, CRICKET_TLS_CERTIFICATE=certificate,
                     CRICKET_TLS_KEY=key)

    def revoke(self, certificate):
        with open(self.pki.path("ca.cnf"), "w", encoding="utf-8") as f:
            f.write("[ca]\ndefault_ca = own\n[own]\ndatabase = %s\ndefault_md = sha256\ndefault_crl_days = 30\n" % self.pki.path("index"))
        open(self.pki.path("index"), "w", encoding="utf-8").close()
        own = ("ca", "-config", self.pki.path("ca.cnf"), "-keyfile", self.pki.path("ca.key"), "-cert", self.pki.ca)
        openssl(*own, "-revoke", certificate)
        openssl(*own, "-gencrl", "-out", self.pki.path("crl.pem"))

    def test_kinds_of_keys(self):
        """RSA and elliptic curves, at both ends: the cage of a connection's process has the calls that they need."""
        for name, kind in (("rsa", ("rsa:2048",)), ("ec", ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"))):
            with self.subTest(kind=name):
                certificate, key = self.pki.issue(name, kind=kind)
                server = self.secure(name, "--tls-ca", self.pki.ca, certificate=certificate, key=key)
                self.assertEqual(self.run_program(server, CRICKET_TLS_CA=self.pki.ca, CRICKET_TLS_CERTIFICATE=certificate, CRICKET_TLS_KEY=key)[0], 0)

    def test_default_files(self):
        """A client finds its files in its home, and then never talks in the clear."""
        directory = os.path.join(self.home, ".config", "cricket", "tls")
        os.makedirs(directory)
        os.link(self.pki.ca, os.path.join(directory, "ca.pem"))
        self.assertEqual(self.run_program(self.secure("one"))[0], 0)
        plain = self.server("plain")
        self.refused(plain, "the server 127.0.0.1 offers no TLS, and this client has an authority", "unset CRICKET_TLS_CA")
        code, _, err = self.may_fail(plain, "ps")
        self.assertNotEqual(code, 0)
        self.assertIn("offers no TLS", err)

    def record(self, sock):
        """One record's data."""
        def exactly(size):
            data = b""
            while len(data) < size:
                piece = sock.recv(size - len(data))
                if not piece:
                    raise ConnectionError("the stream ended")
                data += piece
            return data
        return exactly(struct.unpack(">I", exactly(4))[0] & 0x7fffffff)

    def connect(self, server):
        """A connection that has been greeted in the clear."""
        host, _, port = server.address.rpartition(":")
        sock = socket.create_connection((host, int(port)), 60)
        self.addCleanup(sock.close)
        self.record(sock)
        return sock

    def begin(self, server):
        """A connection on which TLS may begin."""
        sock = self.connect(server)
        sock.sendall(struct.pack(">I", 0x80000000 | len(CALL)) + CALL)
        self.assertEqual(self.record(sock), REPLY)
        return sock

    def context(self, alpn="sunrpc"):
        context = ssl.create_default_context(cafile=self.pki.ca)
        if alpn:
            context.set_alpn_protocols([alpn])
        return context

    def test_protocol(self):
        """Another TLS peer: version 1.3 and the protocol's name, or nothing; and the greeting inside is another one."""
        server = self.secure("one")
        with self.context().wrap_socket(self.begin(server), server_hostname="localhost") as tls:
            self.assertEqual((tls.version(), tls.selected_alpn_protocol()), ("TLSv1.3", "sunrpc"))
            self.assertGreater(len(self.record(tls)), 72)
        old = self.context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        for context in (old, self.context(None), self.context("h2")):
            with self.assertRaises((OSError, ConnectionError)), context.wrap_socket(self.begin(server), server_hostname="localhost") as tls:
                self.record(tls)
        # Nonsense instead of a handshake, instead of the call, and a call that is not quite it.
        sock = self.begin(server)
        sock.sendall(b"\0" * 4096)
        self.ended(sock)
        for bad in (CALL[:-4], CALL + b"\0\0\0\0", CALL[:24] + struct.pack(">I", 8) + CALL[28:]):
            sock = self.connect(server)
            sock.sendall(struct.pack(">I", 0x80000000 | len(bad)) + bad)
            self.ended(sock)
        # TLS inside of TLS.
        with self.context().wrap_socket(self.begin(server), server_hostname="localhost") as tls:
            self.record(tls)
            tls.sendall(struct.pack(">I", 0x80000000 | len(CALL)) + CALL)
            self.ended(tls)
        # A server without TLS takes the call for no hello, as it always did.
        sock = self.connect(self.server("plain"))
        sock.sendall(struct.pack(">I", 0x80000000 | len(CALL)) + CALL)
        self.ended(sock)

    def ended(self, sock):
        """Nothing but the stream's end, or an alert, comes any more."""
        sock.settimeout(60)
        try:
            while sock.recv(4096):
                pass
        except (ConnectionError, ssl.SSLError):
            pass

    def test_slow_peers(self):
        """Handshakes that hang hold nobody up, and end."""
        server = self.secure("one", "--max-waiting-per-peer", "100")
        hanging = []

        def all_hang():
            # The server ends each after five seconds: those that have ended before the last one began are made up for.
            lacking = 50 - len(tls_children(server))
            hanging.extend(self.begin(server) for _ in range(lacking))
            return lacking <= 0

        self.wait(all_hang)
        self.assertEqual(self.run_program(server, CRICKET_TLS_CA=self.pki.ca)[0], 0)
        for sock in hanging:
            self.ended(sock)
        self.wait(lambda: tls_children(server) == [])

    def test_stripped(self):
        """A man in the middle who hides the offer, or answers the call with something else, gets nothing."""
        server = self.secure("one")
        for how in ("offer", "answer"):
            with self.subTest(how=how):
                self.refused(self.middle(server, how), "offers no TLS" if how == "offer" else "it does not begin TLS, though it offers it",
                             CRICKET_TLS_CA=self.pki.ca)

    def middle(self, server, how):
        """The address of one who changes the greeting, or the answer to the call."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        child = os.fork()
        if child == 0:
            while True:
                client, _ = listener.accept()
                with socket.create_connection(server.address.split(":")) as other:
                    greeting = self.record(other)
                    if how == "offer":
                        # The last flavour becomes one that nobody knows.
                        at = greeting.index(struct.pack(">I", 7), 72)
                        greeting = greeting[:at] + struct.pack(">I", 99) + greeting[at + 4:]
                    client.sendall(struct.pack(">I", 0x80000000 | len(greeting)) + greeting)
                    try:
                        self.record(client)
                        denied = REPLY.replace(b"STARTTLS", b"NOTTODAY")
                        client.sendall(struct.pack(">I", 0x80000000 | len(denied)) + denied)
                    except ConnectionError:
                        pass
                client.close()
        self.addCleanup(lambda: (os.kill(child, signal.SIGKILL), os.waitpid(child, 0)))
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_other_channel(self):
        """Who has a certificate that the client trusts, and carries the hello to the server over a channel of its own, gains nothing."""
        server = self.secure("one")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.set_alpn_protocols(["sunrpc"])
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        child = os.fork()
        if child == 0:
            while True:
                client, _ = listener.accept()
                try:
                    self.carry(server, context, client)
                except (OSError, ConnectionError):
                    pass
        self.addCleanup(lambda: (os.kill(child, signal.SIGKILL), os.waitpid(child, 0)))
        self.refused("127.0.0.1:%d" % listener.getsockname()[1], "does not prove that it holds the session's key", CRICKET_TLS_CA=self.pki.ca)

    def carry(self, server, context, client):
        """One hello and its answer, from channel to channel."""
        def put(sock, data):
            sock.sendall(struct.pack(">I", 0x80000000 | len(data)) + data)
        other = self.connect(server)
        # The greeting in the clear is the server's, with the offer.
        with socket.create_connection(server.address.split(":")) as third:
            put(client, self.record(third))
        put(other, CALL)
        self.record(other)
        call = self.record(client)
        put(client, call[:4] + REPLY[4:])
        with context.wrap_socket(client, server_side=True) as near, self.context().wrap_socket(other, server_hostname="localhost") as far:
            put(near, self.record(far))
            put(far, self.record(near))
            put(near, self.record(far))

    def test_killed(self):
        """The death of a connection's process ends that connection alone; its program goes on with another one."""
        expected = self.expected()
        server = self.secure("one")
        (first, _), point = self.start(server, "first", CRICKET_TLS_CA=self.pki.ca), self.point
        before = self.child(server)
        directory = os.path.join(self.dir, "second")
        os.mkdir(directory)
        second = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM],
                                {**runner.clean_environment(), "HOME": self.home, "CRICKET_TLS_CA": self.pki.ca})
        self.programs.append(second)
        os.kill(before, signal.SIGKILL)
        self.assertEqual(second.wait(60)[:2], (0, expected))
        self.wait(lambda: tls_children(server) not in ([], [before]))
        self.point = point
        self.assertEqual(self.finish(first)[0], expected)

    def test_keeper_killed(self):
        """Without the process that holds the key the sessions go on, and another one is started."""
        expected = self.expected()
        server = self.secure("one")
        program, _ = self.start(server, CRICKET_TLS_CA=self.pki.ca)
        (keeper,) = [pid for pid in runner.children_of(server.process.pid) if runner.keeps_key(pid)]
        os.kill(keeper, signal.SIGKILL)
        self.wait(lambda: any(runner.keeps_key(pid) and pid != keeper for pid in runner.children_of(server.process.pid)))
        self.assertEqual(self.finish(program), (expected, ""))
        self.assertEqual(self.run_program(server, CRICKET_TLS_CA=self.pki.ca)[:2], (0, expected))

    def test_server_killed(self):
        """The server's death disturbs no connection that a worker has, and the next server finds the session."""
        expected = self.expected()
        server = self.secure("one")
        program, session = self.start(server, CRICKET_TLS_CA=self.pki.ca)
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        again = self.server("one", "--tls-certificate", self.certificate, "--tls-key", self.key)
        # Its worker says so, which may not have answered yet.
        self.wait(lambda: self.state(again, session) == "running")
        self.assertEqual(self.finish(program), (expected, ""))

    def test_cage(self):
        """The server and its workers have not read the key, and who carries a connection has no rights left."""
        server = self.secure("one")
        self.start(server, CRICKET_TLS_CA=self.pki.ca)
        child = self.child(server)
        with open("/proc/%d/status" % child, encoding="utf-8") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f)
        self.assertEqual(status["Seccomp"].strip(), "2")
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        if os.geteuid() == 0:
            self.assertNotEqual(status["Uid"].split()[1], "0")
            self.assertEqual(int(status["CapEff"], 16), 0)
        with open(self.key, encoding="utf-8") as f:
            secret = "".join(f.read().split("\n")[1:-2]).encode()
        for pid in [server.process.pid, *server.workers()]:
            self.assertNotIn(secret, self.memory(pid))

    def memory(self, pid):
        """What the process has in its heap."""
        with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb") as mem:
            data = b""
            for line in maps:
                if line.rstrip().endswith("[heap]"):
                    first, _, last = line.split()[0].partition("-")
                    mem.seek(int(first, 16))
                    data += mem.read(int(last, 16) - int(first, 16))
            return data

    def test_read_again(self):
        """New files are in force for the next connection; bad ones are not, and the log says so."""
        server = self.secure("one", "--log-level", "info")
        other = Pki(os.path.join(self.dir, "other"), "other")
        with open(self.certificate, "w", encoding="utf-8") as f:
            f.write("nonsense")
        self.assertEqual(self.run_program(server, CRICKET_TLS_CA=self.pki.ca)[0], 0)
        self.assertIn("the files that were read before stay in force", self.log_of(server))
        for new, old in zip(other.issue("server"), (self.certificate, self.key)):
            os.replace(new, old)
        self.assertEqual(self.run_program(server, CRICKET_TLS_CA=other.ca)[0], 0)
        self.refused(server, "its certificate is not accepted", CRICKET_TLS_CA=self.pki.ca)
        self.assertIn("and its key are read again", self.log_of(server))

    def test_moves(self):
        """With tokens, a program is saved and moved over TLS alone: its image, its own connection and cricketctl's."""
        expected = self.expected()
        token = self.token("alice")
        first, second = (self.secure(name, "--tokens", self.tokens) for name in ("first", "second"))
        self.set_environment(CRICKET_TOKEN_FILE=token)
        program, session = self.start(first, CRICKET_TLS_CA=self.pki.ca, CRICKET_TOKEN_FILE=token)
        image = os.path.join(self.dir, "image")
        self.ctl(first, "checkpoint", session, image)
        self.assertTrue(self.image_is_whole(image))
        self.ctl(first, "migrate", session, "--to", second.address)
        self.wait(lambda: self.state(second, session) == "running")
        self.assertEqual(json.loads(self.ctl(second, "stats", session, "--json"))["transport"], "tls")
        self.assertEqual(self.finish(program)[0], expected)
        self.refused(second, "token", CRICKET_TLS_CA=self.pki.ca)

    def test_lanes(self):
        """Large copies go over connections of their own, each with TLS."""
        server = self.secure("one")
        code = textwrap.dedent("""
            import ctypes, os, sys
            cuda = ctypes.CDLL("libcuda.so.1")
            memory, context, size = ctypes.c_uint64(), ctypes.c_void_p(), 32 << 20
            assert cuda.cuInit(0) == 0
            assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
            assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
            there, back = ctypes.create_string_buffer(os.urandom(size), size), ctypes.create_string_buffer(size)
            assert cuda.cuMemcpyHtoD_v2(memory, there, ctypes.c_size_t(size)) == 0
            assert cuda.cuMemcpyDtoH_v2(back, memory, ctypes.c_size_t(size)) == 0
            print("same" if there.raw == back.raw else "other", flush=True)
            sys.stdin.read()""")
        environment = {**runner.clean_environment(), "HOME": self.home, "CRICKET_LANES": "3", "CRICKET_TLS_CA": self.pki.ca}
        program = subprocess.Popen([self.tree.tool("cricket-run"), "--server", server.address, sys.executable, "-c", code], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "same\n")
        # The others may come while the copies are under way.
        self.wait(lambda: [(s["transport"], s["lanes"]) for s in runner.sessions_of(self.tree, server)] == [("tls", 3)])
        self.wait(lambda: len(tls_children(server)) == 4)
        program.communicate()
        self.wait(lambda: tls_children(server) == [])

    def test_options(self):
        """What the server does not start with."""
        def fails(*options, listen="127.0.0.1:0"):
            done = subprocess.run([self.tree.tool("cricket-server"), "--driver", "soft", "--listen", listen, "--socket", os.path.join(self.dir, "s"), *options],
                                  capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr.decode()
        self.assertIn("--tls-certificate without --tls-key", fails("--tls-certificate", self.certificate))
        self.assertIn("--tls-ca without --tls-certificate", fails("--tls-ca", self.pki.ca))
        self.assertIn("key values mismatch", fails("--tls-certificate", self.certificate, "--tls-key", self.pki.issue("other")[1]))
        self.assertIn("No such file", fails("--tls-certificate", "/nowhere", "--tls-key", self.key))
        os.chmod(self.key, 0o644)
        self.assertIn("give it mode 0600", fails("--tls-certificate", self.certificate, "--tls-key", self.key))
        self.assertIn("nothing is encrypted: give --tls-certificate FILE and --tls-key FILE (or --insecure-plaintext", fails("--insecure", listen="0.0.0.0:0"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
