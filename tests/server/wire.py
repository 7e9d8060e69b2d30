# SPDX-License-Identifier: Apache-2.0
"""ONC RPC records and the hand-written protocols, as far as the tests of cricket-server need them.

Written against rpc/*.x and docs/wire.md, not against our C code, so that the two check each other.
"""
import array
import hashlib
import hmac
import os
import socket
import struct
import threading

SESSION, CALLBACK, CONTROL, WORKER = 0x20434B00, 0x20434B02, 0x20434B03, 0x20434B04
AUTH_CRICKET, AUTH_TOKEN, AUTH_PROOF, AUTH_NAMED = 0x20434B10, 0x20434B11, 0x20434B12, 0x20434B13
NEW, RESUME, HELLO_CONTROL, DATA = range(4)
OK, BAD_VERSION, DENIED, NO_SESSION, MOVED, FULL, SHUTTING_DOWN, NO_DEVICE, STALE, PARKED, FAILED = range(11)


class Closed(Exception):
    """The other side ended the connection."""


def u32(value):
    return struct.pack(">I", value & 0xFFFFFFFF)


def u64(value):
    return struct.pack(">Q", value & 0xFFFFFFFFFFFFFFFF)


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return u32(len(data)) + data + bytes(-len(data) % 4)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("message too short")
        piece = self.data[self.at:self.at + size]
        self.at += size
        return piece

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def i32(self):
        return struct.unpack(">i", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def opaque(self):
        size = self.u32()
        data = self.take(size)
        self.take(-size % 4)
        return data

    def text(self):
        return self.opaque().decode()

    def done(self):
        if self.at != len(self.data):
            raise ValueError("%d bytes left over" % (len(self.data) - self.at))


def receive(sock, size, fds):
    data = b""
    while len(data) < size:
        if sock.family == socket.AF_UNIX:
            piece, control, _, _ = sock.recvmsg(size - len(data), socket.CMSG_SPACE(4))
            for level, kind, payload in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers = array.array("i")
                    numbers.frombytes(payload[:len(payload) // 4 * 4])
                    fds.extend(numbers)
        else:
            piece = sock.recv(size - len(data))
        if not piece:
            raise Closed
        data += piece
    return data


def read_record(sock, fds=None):
    fds = [] if fds is None else fds
    try:
        mark = struct.unpack(">I", receive(sock, 4, fds))[0]
        assert mark >> 31, "not a last fragment"
        return receive(sock, mark & 0x7FFFFFFF, fds)
    except ConnectionResetError:
        raise Closed from None


def write_record(sock, data, fd=None):
    record = u32(0x80000000 | len(data)) + data
    if fd is None:
        sock.sendall(record)
    else:
        sent = sock.sendmsg([record], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        sock.sendall(record[sent:])


def call_header(xid, prog, proc):
    return (u32(xid) + u32(0) + u32(2) + u32(prog) + u32(1) + u32(proc) + u32(AUTH_CRICKET) + u32(32) + bytes(32) + u32(0) + u32(0))


def reply_header(xid, executed=0):
    return u32(xid) + u32(1) + u32(0) + u32(AUTH_CRICKET) + u32(16) + u64(executed) + u32(0) + u32(0) + u32(0)


def parse_call(data):
    """(xid, prog, proc, reader at the arguments)"""
    r = Reader(data)
    xid, kind, version, prog, vers, proc = (r.u32() for _ in range(6))
    flavour, body = r.u32(), r.opaque()
    assert (kind, version, vers, flavour, len(body)) == (0, 2, 1, AUTH_CRICKET, 32), "no call of ours"
    assert (r.u32(), r.u32()) == (0, 0)
    return xid, prog, proc, r


def parse_reply(data, xid):
    r = Reader(data)
    assert r.u32() == xid, "another call's reply"
    assert (r.u32(), r.u32()) == (1, 0), "not accepted"
    assert (r.u32(), r.u32()) == (AUTH_CRICKET, 16)
    executed = r.u64()
    r.u32(), r.u32()
    assert r.u32() == 0, "accept_stat"
    return executed, r


def session_id(secret, attempt=0):
    """The id that a session with this secret has."""
    secret_hash = hashlib.sha256(secret).digest()
    data = b"cricket session".ljust(31, b"\0") + bytes([attempt])
    for _ in range(4096):
        data = hashlib.sha256(data + secret_hash).digest()
    return data.hex()[:12]


def hello_args(kind, session="", secret=None, protocol=1, program="test", host="here", pid=4711, uid=1000, capabilities=(("unheard-of", 7),)):
    # The session's id comes from it, so every program has its own.
    secret = secret or (os.urandom(16) if kind == NEW else bytes(16))
    return (u32(protocol) + u32(kind) + text(session) + secret + u64(0) + u64(0) + text(program) + text(host) + u32(pid) + u32(uid) +
            text("0.1.0") + u32(len(capabilities)) + b"".join(text(name) + u64(value) for name, value in capabilities))


def parse_hello_args(r):
    hello = {"protocol": r.u32(), "kind": r.u32(), "session": r.text(), "secret": r.take(16), "generation": r.u64(), "acked": r.u64(),
             "program": r.text(), "host": r.text(), "pid": r.u32(), "uid": r.u32(), "build": r.text()}
    hello["capabilities"] = [(r.text(), r.u64()) for _ in range(r.u32())]
    return hello


def hello_ok(session, generation=0, executed=0):
    return u32(OK) + u32(1) + text(session) + u64(generation) + u64(executed) + text("worker") + text("0.1.0") + u32(0)


BROKER, READ, MAKE, MANIFEST = 0x436B4231, 0, 1, 0xFFFFFFFF


def broker_open(sock, what, directory, number):
    """Asks a file broker (checkpoint/format/broker.h) for a file: a descriptor, or OSError."""
    sock.send(struct.pack(">IIIII", BROKER, 1, what, directory, number))
    data, control, _, _ = sock.recvmsg(12, socket.CMSG_SPACE(4))
    if not data:
        raise OSError(104, "the broker ended")
    magic, tag, status = struct.unpack(">IIi", data)
    assert (magic, tag) == (BROKER, 1)
    if status:
        raise OSError(-status, os.strerror(-status))
    ((_, _, payload),) = control
    return struct.unpack("i", payload[:4])[0]


class Broker:
    """Serves the files of a directory, as cricketctl does.  `fd` is for the worker."""

    def __init__(self, *directories):
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.fd = self.theirs.fileno()
        self.asks = []
        self.thread = threading.Thread(target=self.serve, args=(ours, directories), daemon=True)
        self.thread.start()

    def serve(self, sock, directories):
        while True:
            ask = sock.recv(20)
            if not ask:
                return
            _, tag, what, directory, number = struct.unpack(">IIIII", ask)
            name = "manifest" if number == MANIFEST else "data-%d" % number
            self.asks.append((what, directory, name))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL if what == MAKE else os.O_RDONLY
            try:
                fd = os.open(os.path.join(directories[directory], name), flags, 0o600)
            except OSError as error:
                sock.send(struct.pack(">IIi", BROKER, tag, -error.errno))
                continue
            sock.sendmsg([struct.pack(">IIi", BROKER, tag, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
            os.close(fd)

    def close(self):
        self.theirs.close()


def client_key_of(token):
    return hmac.new(token, b"cricket client key", hashlib.sha256).digest()


def stored_key_of(token):
    """What a file of tokens has of it: rpc/token_file.h."""
    return hashlib.sha256(client_key_of(token)).digest()


def token_proof(token, message):
    """The body of a credential that proves a token: rpc/credential.h."""
    client_key, stored_key = client_key_of(token), stored_key_of(token)
    token_id = hmac.new(stored_key, b"cricket token id", hashlib.sha256).digest()[:8]
    mask = hmac.new(stored_key, message, hashlib.sha256).digest()
    return u32(1) + token_id + bytes(a ^ b for a, b in zip(client_key, mask)) + u32(0)


class Peer:
    """One connection to a server, greeting read."""

    def __init__(self, address, timeout=20, greeting=True):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
        else:
            self.sock = socket.socket()
        self.sock.settimeout(timeout)
        self.sock.connect(address)
        self.xid = 100
        if greeting:
            try:
                self.take_greeting()
            except BaseException:
                self.sock.close()
                raise

    def take_greeting(self):
        _, prog, proc, r = parse_call(read_record(self.sock))
        assert (prog, proc) == (CALLBACK, 1), "no greeting"
        self.protocol = r.u32()
        self.flavours = [r.u32() for _ in range(r.u32())]
        self.nonce = r.take(32)
        r.done()

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def hello_bytes(self, kind, token=None, args=None, proof=None, **fields):
        """token: shown as clients of earlier versions do; proof: the token that is proven as they do now"""
        args = hello_args(kind, **fields) if args is None else args
        credential = u32(0) + u32(0)
        if proof is not None:
            body = token_proof(proof, self.nonce + args)
            credential = u32(AUTH_PROOF) + u32(len(body)) + body
        elif token is not None:
            credential = u32(AUTH_TOKEN) + u32(32) + hmac.new(token, self.nonce + args, hashlib.sha256).digest()
        return u32(self.xid) + u32(0) + u32(2) + u32(SESSION) + u32(1) + u32(1) + credential + u32(0) + u32(0) + args

    def hello(self, kind, token=None, **fields):
        """(status, session) or (status, message)"""
        write_record(self.sock, self.hello_bytes(kind, token, **fields))
        _, r = parse_reply(read_record(self.sock), self.xid)
        status = r.u32()
        if status == OK:
            assert r.u32() == 1
            session = r.text()
            self.generation, self.executed = r.u64(), r.u64()
            return status, session
        message = r.text()
        r.text()
        r.done()
        return status, message

    def call(self, proc, args=b"", fd=None, prog=CONTROL):
        self.xid += 1
        write_record(self.sock, call_header(self.xid, prog, proc) + args, fd)
        return parse_reply(read_record(self.sock), self.xid)[1]
