#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log of cricket-server: one line for each control call, refusal and session, and nothing that a peer could forge or leak."""
import ctypes
import json
import os
import re
import signal
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import GUARD, HERE, ServerTest, wait_until  # noqa: E402
from wire import text, u32, u64  # noqa: E402

KEYS = ["time", "event", "peer", "pid", "owner", "role", "call", "session", "object", "program", "worker", "result", "reason", "count", "lost"]
NEWNS, REC, PRIVATE, BIND = 0x20000, 0x4000, 0x40000, 0x1000  # <sched.h>, <sys/mount.h>
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# For each procedure of rpc/control.x: its arguments, what the log says of session and object, and the result.
# "SESSION" and "STAGE" stand for the ones that the test made.
CALLS = {
    "null": (b"", None, None, "ok"),
    "info": (b"", None, None, "ok"),
    "list": (text(""), None, None, "ok"),
    "list2": (text(""), None, None, "ok"),
    "stats": (("SESSION",), "SESSION", None, "ok"),
    "checkpoint": (("SESSION", u32(0) + u32(1000)), "SESSION", None, "refused"),  # no broker came along
    "restore": (u32(-1), None, None, "refused"),
    "stage_make": (b"", None, None, "ok"),
    "stage_list": (("STAGE",), None, "STAGE", "ok"),
    "stage_data": (("STAGE",), None, "STAGE", "ok"),
    "save": (("SESSION", text("no-stage") + u32(1000) + u32(0) + u32(0) + bytes(16) + u32(0) + u32(0) + u32(0)), "SESSION", "no-stage", "refused"),
    "release": (("SESSION", u32(0) + u32(0) + text("")), "SESSION", None, "refused"),
    "image": (u32(0), None, None, "refused"),
    "restore2": (u32(-1) + u32(1) + text("no-stage"), None, None, "refused"),
    "pause": (("SESSION", u32(60000) + u64(0)), "SESSION", None, "ok"),
    "unpause": (("SESSION",), "SESSION", None, "ok"),
    "swap": (("SESSION", u32(0) + u32(1000)), "SESSION", None, "refused"),  # no swap memory
    "swap_look": (("SESSION",), "SESSION", None, "ok"),
    "progress": (("SESSION",), "SESSION", None, "ok"),
    "events": (u64(0), None, None, "ok"),
    "stage_keep": (("STAGE", text("kept")), None, "kept", "ok"),
    "stage_remove": (text("no-stage"), None, "no-stage", "refused"),
    "kept_list": (b"", None, None, "ok"),
    "kept_remove": (text("no-image"), None, "no-image", "refused"),
    "preload": (text("") + u32(-1) + u32(0) + u32(1) + text("no-stage"), None, None, "refused"),
    "quiesce": (("SESSION",), "SESSION", None, "refused"),
    "devices": (b"", None, None, "ok"),
    "nvml": (u32(0xffff) + u32(0) + u32(0) + 3 * u32(0), None, None, "failed"),
    "jobs": (text(""), None, None, "ok"),
    "connections": (text(""), None, None, "ok"),
    "owners": (u32(0), None, None, "ok"),
    "warm": (b"", None, None, "ok"),
    "owned_events": (u64(0), None, None, "ok"),
    "job_hold": (text("no-job"), None, "no-job", "refused"),
    "job_look": (u32(0), None, None, "refused"),
    "job_end": (b"", None, None, "refused"),
    "job_key_show": (bytes(16), None, None, "ok"),
    "nccl_make": (text("0123456789ab") + u32(1), "0123456789ab", None, "refused"),
    "nccl_ids": (text("0123456789ab") + u32(0), "0123456789ab", None, "refused"),
    "trace": (("SESSION", u32(0) + u32(0) + u64(0)), "SESSION", None, "ok"),
    "quanta": (text(""), None, None, "ok"),
    "turns": (text(""), None, None, "ok"),
    "sharings": (text(""), None, None, "ok"),
    "share_groups": (text(""), None, None, "ok"),
    "share_modes": (b"", None, None, "ok"),
    "waits": (u32(0), None, None, "ok"),
    "drain": (u32(0) + text(""), None, "look", "ok"),
    "durable": (text(""), None, None, "ok"),
    # It keeps no automatic images.
    "replica_look": (text("0123456789ab"), "0123456789ab", None, "refused"),
    "replica_image": (text("0123456789ab") + text("no-stage") + u64(1), "0123456789ab", None, "refused"),
    "replica_keep": (text("0123456789ab") + text("end\n") + u32(2000), "0123456789ab", None, "refused"),
    "replica_lease": (text("0123456789ab") + u32(2000), "0123456789ab", None, "refused"),
    "replica_drop": (text("0123456789ab"), "0123456789ab", None, "refused"),
    "replicas": (text("") + u32(0), None, None, "ok"),
    "decide": (u64(7) + u64(1) + text("") + u32(0), None, None, "refused"),  # no such event
    "facts": (u64(0), None, None, "ok"),  # the first of a connection
    "replace": (b"", None, None, "refused"),
    "image_mac": (text("") + bytes(16) + u32(0) + bytes(32) + u32(0), None, None, "ok"),
    "watch": None,  # it has no line: see test_watch
    # Reading a trace has a line only where it is refused.
    "trace_read": (text("0123456789ab") + u32(1) + u32(0) + u64(0), "0123456789ab", None, "refused"),
    "limit_set": (text("job=a memory=8G"), None, "job=a memory=8G", "ok"),
    "limit_show": (b"", None, None, "ok"),
    "limit_clear": (text("job=a"), None, "job=a", "ok"),
    # Pieces of files, on the connection that stage_data took: see test_pieces.
    "read": None,
    "write": None,
    "kill": (("SESSION",), "SESSION", None, "ok"),
    # The fake worker does not know what these ask of it, so they come when it is gone.
    "gpu_use": (u32(0), None, None, "ok"),
    "base": (("SESSION", bytes(16) + u64(0) + text("")), "SESSION", None, "refused"),
}


def entry_of(data):
    """The fields of a datagram in the journal's native protocol: each name with its values."""
    fields = {}
    while data:
        line, data = data.split(b"\n", 1)
        name, equals, value = line.partition(b"=")
        if not equals:
            size = struct.unpack("<Q", data[:8])[0]
            value, end, data = data[8:8 + size], data[8 + size:9 + size], data[9 + size:]
            assert end == b"\n", "no line's end behind the value"
        fields.setdefault(name.decode(), []).append(value)
    return fields


def procedures():
    """Name and number of every control call, from the description of the protocol."""
    with open(os.path.join(HERE, "..", "..", "rpc", "control.x"), encoding="utf-8") as f:
        block = f.read().split("version CRICKET_CONTROL_VERS {", 1)[1]
    return {name.lower(): int(number) for name, number in re.findall(r"CKT_CONTROL_(\w+)\([^)]*\) = (\d+);", block)}


class Audit(ServerTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "audit")

    def lines(self):
        """All of the log, each line checked."""
        with open(self.path, encoding="ascii") as f:
            data = f.read()
        # A line that crosses a page may be seen half way; the thread writes the rest.
        lines = [json.loads(line) for line in data[:data.rfind("\n") + 1].splitlines()]
        for line in lines:
            keys = list(line)
            self.assertEqual(keys, [key for key in KEYS if key in keys], "keys out of their order, or unknown")
            self.assertRegex(line["time"], TIME)
            self.assertIn(line["event"], ("control", "refused", "session"))
            self.assertIn(line["result"], ("ok", "refused", "failed"))
            self.assertIn(line.get("role", "user"), ("user", "operator", "administrator"))
        return lines

    def calls(self):
        return [line for line in self.lines() if line["event"] == "control"]

    def sessions(self):
        return [(line["call"], line["session"], line["program"], line["owner"]) for line in self.lines() if line["event"] == "session"]

    def after(self, count, number=1):
        """The lines from that number on, once there are some."""
        wait_until(lambda: len(self.lines()) >= count + number, what="no line in the audit log")
        return self.lines()[count:]

    def control(self):
        peer = wire.Peer(self.socket)
        self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
        return peer

    def client(self, **fields):
        """A program with a session."""
        peer = wire.Peer(self.socket)
        status, session = peer.hello(wire.NEW, **fields)
        self.assertEqual(status, wire.OK, session)
        return peer, session

    def check(self, line, name, session, stage, stands):
        """One line about one call."""
        _, of_session, of_object, result = CALLS[name]
        self.assertEqual(line["event"], "control")
        self.assertEqual(line["call"], name)
        self.assertEqual((line["peer"], line["pid"], line["owner"]), ("local", os.getpid(), "uid:%d" % os.getuid()))
        self.assertEqual(line["role"], "administrator")
        self.assertEqual(line.get("session"), session if of_session == "SESSION" else of_session, stands)
        self.assertEqual(line.get("object"), stage if of_object == "STAGE" else of_object, stands)
        self.assertEqual(line["result"], result, stands)
        self.assertEqual("reason" in line, line["result"] == "refused", stands)
        self.assertNotIn("count", line)
        self.assertNotIn("lost", line)

    def test_every_call(self):
        numbers = procedures()
        self.assertEqual(sorted(CALLS), sorted(numbers), "the table above lacks a procedure, or has one too many")
        self.assertGreater(len(numbers), 36)
        server = self.start("--audit", self.path, listen=None)
        program, session = self.client(program="nbody")
        keeper = self.control()
        keeper.call(numbers["stage_make"])
        wait_until(lambda: len(self.calls()) == 1, what="no line about stage_make")
        stage = self.stages()[0]
        for name, row in CALLS.items():
            if row is None:
                continue
            words = row[0] if isinstance(row[0], tuple) else (row[0],)
            args = b"".join(text({"SESSION": session, "STAGE": stage}[word]) if isinstance(word, str) else word for word in words)
            before = len(self.calls())
            peer = keeper if name == "stage_keep" else self.control()
            with self.subTest(name):
                peer.call(numbers[name], args)
                wait_until(lambda: len(self.calls()) > before, what="no line about %s" % name)
                self.check(self.calls()[before], name, session, stage, self.lines()[-3:])
                self.assertEqual(len(self.calls()), before + 1, "not one line about %s" % name)
            if peer is not keeper:
                peer.close()
        wait_until(lambda: len(self.sessions()) == 3, what="no line about the session's end")
        owner = "uid:%d" % os.getuid()
        self.assertEqual(self.sessions(), [(call, session, "nbody", owner) for call in ("started", "connected", "ended")])
        self.assertEqual([line for line in self.lines() if line["event"] == "refused"], [])
        program.close()
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(60), 0)
        with open(self.path, encoding="ascii") as f:
            self.assertTrue(f.read().endswith("}\n"))

    def test_refusals(self):
        """Hellos that are refused, one line each; a program's name cannot end a line, and a secret never stands in one."""
        token = os.path.join(self.dir, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("correct-horse-battery")
        self.start("--audit", self.path, "--token-file", token)
        secret = b"sixteen secrets!"
        forged = b'x\n{"time":"2026-01-01T00:00:00.000Z","event":"control","call":"kill"}\r\xff\xc0\x8a'
        cases = (
            (self.socket, {"kind": wire.RESUME, "session": "0123456789ab", "secret": secret, "program": forged}, wire.NO_SESSION),
            (self.tcp, {"kind": wire.HELLO_CONTROL}, wire.DENIED),
            (self.tcp, {"kind": wire.NEW, "token": b"wrong-horse-battery", "secret": secret}, wire.DENIED),
            (self.socket, {"kind": wire.NEW, "protocol": 99}, wire.BAD_VERSION),
        )
        for count, (address, fields, status) in enumerate(cases):
            with wire.Peer(address) as peer:
                self.assertEqual(peer.hello(**fields)[0], status)
                line, = self.after(count)
            is_local = address == self.socket
            self.assertEqual((line["event"], line["call"], line["result"]), ("refused", "hello", "refused"))
            self.assertEqual(line["owner"], "uid:%d" % os.getuid() if is_local else "host:127.0.0.1")
            self.assertRegex(line["peer"], "^local$" if is_local else r"^127\.0\.0\.1:\d+$")
            self.assertEqual(line.get("pid"), os.getpid() if is_local else None)
            self.assertTrue(line["reason"])
        first = self.lines()[0]
        self.assertEqual(first["program"], forged[:-3].decode() + 3 * "\ufffd")
        self.assertEqual(first["session"], "0123456789ab")
        with open(self.path, "rb") as f:
            data = f.read()
        for leaked in (b"horse", secret, secret.hex().encode()):
            self.assertNotIn(leaked, data)
        # A holder of the token.
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.HELLO_CONTROL, token=b"correct-horse-battery")[0], wire.OK)
            peer.call(1)
            line, = self.after(len(cases))
        self.assertEqual((line["owner"], line["call"]), ("token:token", "info"))

    def test_failures(self):
        """What a worker cannot do has failed; what a session's owner decides is refused, even if only the worker's answer tells."""
        numbers = procedures()
        self.start("--audit", self.path, listen=None, env={"CRICKET_SOFT_FAKE": "badsave"})
        program, session = self.client()
        image = os.path.join(self.dir, "image")
        os.mkdir(image, 0o700)
        broker = wire.Broker(image)
        self.addCleanup(broker.close)
        with self.control() as peer:
            args = text(session) + text("") + u32(60000) + u32(0) + u32(0) + bytes(16) + u32(0) + u32(0) + u32(0)
            self.assertNotEqual(peer.call(numbers["save"], args, fd=broker.fd).u32(), 0)
            self.assertEqual(peer.call(numbers["checkpoint"], text(session) + u32(0) + u32(60000), fd=broker.fd).u32(), 0)
            # It is already here.
            self.assertNotEqual(peer.call(numbers["restore"], u32(-1), fd=broker.fd).u32(), 0)
            wait_until(lambda: len(self.calls()) == 3, what="not three lines")
        self.assertEqual([(line["call"], line["result"]) for line in self.calls()], [("save", "failed"), ("checkpoint", "ok"), ("restore", "refused")])
        self.assertIn("already here", self.calls()[2]["reason"])
        program.close()

    def test_watch(self):
        """What cricketctl top asks again and again has no line."""
        numbers = procedures()
        self.start("--audit", self.path, listen=None)
        program, session = self.client(program="nbody")
        with self.control() as peer:
            for _ in range(3):
                r = peer.call(numbers["watch"], text(""))
                self.assertEqual((r.u32(), r.text()), (1, session))
            peer.call(numbers["info"])
            wait_until(self.calls, what="no line about info")
            self.assertEqual([line["call"] for line in self.calls()], ["info"])
        program.close()

    def test_pieces(self):
        """READ and WRITE: a line for each connection that carries files, with the number of pieces."""
        numbers = procedures()
        self.start("--audit", self.path, listen=None)
        with self.control() as keeper, self.control() as peer:
            keeper.call(numbers["stage_make"])
            stage = self.stages()[0]
            peer.call(numbers["stage_data"], text(stage))
            for piece in range(3):
                peer.call(numbers["write"], text("file") + u64(piece * 4) + text("abcd"))
            peer.call(numbers["write"], text("../file") + u64(0) + text("abcd"))
            peer.call(numbers["read"], text("file") + u64(0) + u32(12))
            peer.close()
            lines = {line["call"]: line for line in self.after(2, 2)}
            self.assertEqual(sorted(lines), ["read", "write"])
            for line in lines.values():
                self.assertEqual([line[key] for key in ("event", "pid", "object")], ["control", os.getpid(), stage])
            self.assertEqual((lines["read"]["result"], lines["read"].get("count")), ("ok", None))
            self.assertEqual((lines["write"]["result"], lines["write"]["count"]), ("failed", 4))
            self.assertEqual(lines["write"]["reason"], "1 failed, the first: Invalid argument")

    def test_clients(self):
        """A client that returns is a line, and one whose secret the worker refuses another."""
        self.start("--audit", self.path, listen=None, env={"CRICKET_SOFT_FAKE": "strict"})
        program, session = self.client(secret=b"sixteen secrets!", program="one")
        wait_until(lambda: len(self.sessions()) == 2, what="no line about the client")
        with wire.Peer(self.socket) as thief:
            self.assertEqual(thief.hello(wire.RESUME, session=session, secret=b"sixteen guesses!", program="two")[0], wire.DENIED)
        line = self.after(2)[0]
        self.assertEqual([line[key] for key in ("event", "call", "session", "program", "result", "pid")],
                         ["refused", "hello", session, "two", "refused", os.getpid()])
        self.assertIn("the secret is not the session's", line["reason"])
        program.close()
        with wire.Peer(self.socket) as again:
            self.assertEqual(again.hello(wire.RESUME, session=session, secret=b"sixteen secrets!", program="one")[0], wire.OK)
            line = self.after(3)[0]
        self.assertEqual([line[key] for key in ("event", "call", "session", "program", "pid")], ["session", "connected", session, "one", os.getpid()])

    def test_guesses(self):
        """Who guesses tokens and hangs up leaves as many lines as who waits for the answer, which comes ever later."""
        token = os.path.join(self.dir, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("correct-horse-battery")
        self.start("--audit", self.path, "--token-file", token, "--max-delay", "1")
        for _ in range(8):
            with wire.Peer(self.tcp) as peer:
                wire.write_record(peer.sock, peer.hello_bytes(wire.NEW, token=b"wrong-horse-battery"))
        wait_until(lambda: len(self.lines()) == 8, what="not a line for each guess")
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW, token=b"wrong-horse-battery")[0], wire.DENIED)
        wait_until(lambda: len(self.lines()) == 9, what="not one line for the last guess")
        for line in self.lines():
            self.assertEqual([line[key] for key in ("event", "call", "owner", "result")], ["refused", "hello", "host:127.0.0.1", "refused"])

    def test_flood(self):
        """Hundreds of bad hellos cost few lines, and none of them is forgotten."""
        self.start("--audit", self.path, listen=None)
        for _ in range(300):
            with wire.Peer(self.socket) as peer:
                self.assertEqual(peer.hello(wire.RESUME, session="0123456789ab")[0], wire.NO_SESSION)

        def told():
            return sum(line.get("count", 1) for line in self.lines() if line["call"] == "hello")

        wait_until(lambda: told() == 300, what="not all refusals are counted")
        # Ten a second at most, however long all of it took.
        lines = self.lines()
        self.assertLessEqual(len(lines), 12 * (self.seconds(lines) + 1))

    def seconds(self, lines):
        """In how many seconds of the clock they were written."""
        return len({line["time"][:19] for line in lines})

    def test_dropped(self):
        """The same for connections that are dropped before their hello."""
        self.start("--audit", self.path, "--max-waiting", "3", listen=None)
        # At once: one that has waited for a second goes for a newer one, which then is not dropped.
        peers, dropped = [wire.Peer(self.socket, greeting=False) for _ in range(60)], 0
        for peer in peers:
            try:
                peer.take_greeting()
            except wire.Closed:
                dropped += 1
        self.assertGreater(dropped, 40)
        # Later ones may go, too: for a newer one, or because they say nothing.
        wait_until(lambda: sum(line.get("count", 1) for line in self.lines()) >= dropped, what="not all dropped connections are counted")
        lines = self.lines()
        for line in lines:
            self.assertEqual((line["event"], line["call"], line["peer"], line["owner"]), ("refused", "connect", "local", "uid:%d" % os.getuid()))
            self.assertIn("waiting", line["reason"])
        # One a second, however long all of it took.
        self.assertLessEqual(len(lines), 2 * (self.seconds(lines) + 1))
        for peer in peers:
            peer.close()

    def test_rotated(self):
        """logrotate: the file is renamed, and SIGHUP makes the next line go into a new one."""
        server = self.start("--audit", self.path, listen=None)
        with self.control() as peer:
            peer.call(0)
            self.after(0)
            os.rename(self.path, self.path + ".1")
            peer.call(1)
            server.send_signal(signal.SIGHUP)
            wait_until(lambda: os.path.exists(self.path), what="no new file after SIGHUP")
            peer.call(22)
            line, = self.after(0)
        self.assertEqual(line["call"], "kept_list")
        self.assertEqual(os.stat(self.path).st_mode & 0o7777, 0o600)
        with open(self.path + ".1") as f:
            self.assertEqual([json.loads(each)["call"] for each in f], ["null", "info"])
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(60), 0)

    def in_journal(self, *options, **environment):
        """A server in a mount namespace whose journal is the test: the journal's socket."""
        if os.getuid() != 0:
            self.skipTest("needs root, for a /run of its own")
        directory = os.path.join(self.dir, "journal")
        os.mkdir(directory)
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(journal.close)
        journal.bind(os.path.join(directory, "socket"))
        journal.settimeout(GUARD)
        libc = ctypes.CDLL(None, use_errno=True)

        def mount(source, target, kind, flags):
            if libc.mount(source, target, kind, ctypes.c_ulong(flags), None):
                os._exit(77)

        def own_run():
            if libc.unshare(NEWNS):
                os._exit(77)
            mount(None, b"/", None, REC | PRIVATE)
            mount(b"run", b"/run", b"tmpfs", 0)
            os.makedirs("/run/systemd/journal")
            mount(directory.encode(), b"/run/systemd/journal", None, BIND)

        server = self.spawn(*options, listen=None, env=environment, preexec_fn=own_run)
        wait_until(lambda: os.path.exists(self.address_file) or server.poll() is not None, what="the server does not get ready")
        if server.poll() == 77:
            self.skipTest("this host refuses mount namespaces")
        self.assertIsNone(server.poll(), self.log())
        return journal

    def test_log(self):
        """The server's log in the journal: because stderr leads there, by the word of systemd."""
        open(os.path.join(self.dir, "log"), "a").close()
        stream = os.stat(os.path.join(self.dir, "log"))
        journal = self.in_journal(JOURNAL_STREAM="%d:%d" % (stream.st_dev, stream.st_ino))
        fields = entry_of(journal.recv(65536))
        while not fields["MESSAGE"][0].startswith(b"version "):
            fields = entry_of(journal.recv(65536))
        self.assertEqual((fields["PRIORITY"], fields["SYSLOG_IDENTIFIER"]), ([b"6"], [b"cricket-server"]))
        self.assertEqual(self.log(), "")
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.NEW, program="x\nCRICKET_OWNER=forged")[0], wire.OK)
            while "CRICKET_SESSION" not in fields:
                fields = entry_of(journal.recv(65536))
        session = fields["CRICKET_SESSION"][0].decode()
        self.assertTrue(fields["MESSAGE"][0].decode().startswith("session %s: " % session))
        self.assertEqual(fields["CRICKET_OWNER"], [b"uid:%d" % os.getuid()])
        self.assertEqual(fields["CRICKET_PROGRAM"], [b"x?CRICKET_OWNER=forged"])

    def test_journal(self):
        """Entries of the journal, in a mount namespace whose journal is the test."""
        journal = self.in_journal("--audit", "journal")
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.RESUME, session="0123456789ab", program="x\nCRICKET_EVENT=forged")[0], wire.NO_SESSION)
            entry = journal.recv(65536)
        fields = entry_of(entry)
        self.assertEqual(fields["CRICKET_EVENT"], [b"refused"])
        self.assertEqual(fields["CRICKET_PROGRAM"], [b"x\nCRICKET_EVENT=forged"])
        line = json.loads(fields["MESSAGE"][0])
        self.assertEqual((line["event"], line["session"]), ("refused", "0123456789ab"))
        self.assertEqual(sorted(fields), sorted(["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"] + ["CRICKET_" + key.upper() for key in line]))

    def test_refuses_to_start(self):
        other = os.path.join(self.dir, "open-to-all")
        with open(other, "w"):
            os.chmod(other, 0o666)
        cases = [("/nowhere/audit", "cricket-server: --audit: '/nowhere/audit': No such file or directory: give a path in a directory"),
                 (self.dir, "Is a directory"), (other, "other users may write to it: chmod go-w"), ("audit", "give an absolute path, or write journal")]
        if not os.path.exists("/run/systemd/journal/socket"):
            cases.append(("journal", "cannot reach systemd's journal at /run/systemd/journal/socket"))
        for value, says in cases:
            with self.subTest(value):
                server = self.spawn("--audit", value, listen=None)
                self.assertNotEqual(server.wait(60), 0)
                self.assertIn(says, self.log())
        self.assertFalse(os.path.exists(self.socket))

    def stages(self):
        return sorted(name for name in os.listdir(self.socket + ".images") if name != "kept")


if __name__ == "__main__":
    unittest.main()
