#!/usr/bin/python3
"""A worker without CUDA: rpc/worker.x and a hello, nothing else.  Lets the server's tests misbehave on purpose.

CRICKET_SOFT_FAKE (passed on by the server as every CRICKET_SOFT_*) holds words: slow (START takes 2 s), refuse (START fails),
nodevice, crash (dies in START), deaf (ignores KILL), garbage (answers STATUS with garbage).
"""
import os
import resource
import select
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from wire import text, u32, u64  # noqa: E402

MODE = os.environ.get("CRICKET_SOFT_FAKE", "").split()
listener = socket.socket(fileno=3)
state = {"session": "", "hello": None, "peer_uid": 0xFFFFFFFF, "timeout": 8.0, "since": time.monotonic(), "started": int(time.time())}
controls, clients = [], []


def describe_process():
    """What the tests want to know of the process that the server made."""
    lines = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    with open("/proc/self/personality") as f:
        personality = int(f.read(), 16)
    return "uid=%d nnp=%s core=%d stack=%d sid=%d aslr_off=%d fds=%s env=%s" % (
        os.getuid(), lines["NoNewPrivs"].strip(), resource.getrlimit(resource.RLIMIT_CORE)[1], resource.getrlimit(resource.RLIMIT_STACK)[0],
        os.getsid(0) == os.getpid(), bool(personality & 0x40000), ",".join(START_FDS), ",".join(sorted(k for k in os.environ)))


START_FDS = sorted(os.listdir("/proc/self/fd"), key=int)[:-1]


def status():
    hello = state["hello"] or {"program": "", "host": "", "pid": 0}
    return (text(state["session"]) + u32(1 if clients else 3 if state.get("restored") else 2) + text(hello["program"]) + text(hello["host"]) +
            u32(hello["pid"]) + u32(state["peer_uid"]) + u32(os.getpid()) + u32(0) + u64(4096) + u64(state["started"]) + bytes(32) + u64(0) +
            u64(5) + text(describe_process()[:512]))


def start(r, fds):
    state["session"], _, state["driver"] = r.text(), r.text(), r.text()
    state["gpus"] = [r.u32() for _ in range(r.u32())]
    state["limit"], claim, disconnect, restore = r.u64(), r.u32(), r.u32(), r.u32()
    r.done()
    state["timeout"], state["claim"] = disconnect / 1000, claim / 1000
    if "slow" in MODE:
        time.sleep(2)
    if "crash" in MODE:
        os.kill(os.getpid(), 11)
    if "refuse" in MODE:
        return u32(-5) + text("refused on purpose")
    if "nodevice" in MODE:
        return u32(-19) + text("no device on purpose")
    if restore:
        directory = fds.pop()
        try:
            with open(os.open("manifest", os.O_RDONLY, dir_fd=directory)) as f:
                state["session"] = f.read()
        except OSError as error:
            return u32(-error.errno) + text("manifest: " + error.strerror)
        os.close(directory)
        state["restored"], state["timeout"] = True, state["claim"]
    return u32(0) + text("")


def client(r, fds):
    xid, state["hello"] = r.u32(), wire.parse_hello_args(r)
    state["peer_uid"], state["peer"] = r.u32(), r.text()
    r.done()
    sock = socket.socket(fileno=fds.pop())
    assert sock.getblocking() or True
    clients.append(sock)
    wire.write_record(sock, wire.reply_header(xid, 5) + wire.hello_ok(state["session"], executed=5))
    return u32(0)


def save(r, fds):
    stop = r.u32()
    r.u32()
    directory = fds.pop()
    with open(os.open("manifest", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory), "w") as f:
        f.write(state["session"])
    os.close(directory)
    state["stop"] = bool(stop)
    return u32(0) + text("") + u64(12)


def stats(_r, _fds):
    calls = [("cuMemAlloc", 3, 0, 3, 300), ("cuLaunchKernel", 1000, 1000, 0, 64000)]
    return u32(len(calls)) + b"".join(text(c[0]) + b"".join(u64(n) for n in c[1:]) for c in calls)


def serve(sock):
    fds = []
    xid, prog, proc, r = wire.parse_call(wire.read_record(sock, fds))
    assert prog == wire.WORKER
    if proc == 6 and "deaf" in MODE:
        return
    if proc == 3 and "garbage" in MODE:
        wire.write_record(sock, b"garbage")
        return
    answers = {0: lambda r, f: b"", 1: start, 2: client, 3: lambda r, f: status(), 4: stats, 5: save, 6: lambda r, f: b""}
    wire.write_record(sock, wire.reply_header(xid) + answers[proc](r, fds))
    if proc == 6 or state.get("stop"):
        sys.exit(0)


while True:
    ready = select.select([listener] + controls + clients, [], [], 0.2)[0]
    for sock in ready:
        if sock is listener:
            controls.append(listener.accept()[0])
            controls[-1].setblocking(True)
        elif sock in controls:
            try:
                serve(sock)
            except wire.Closed:
                controls.remove(sock)
        else:
            try:
                data = sock.recv(4096)
            except OSError:
                data = b""
            if data:
                sock.sendall(data)  # an echo, to see that the connection really is ours
            else:
                clients.remove(sock)
                state["since"] = time.monotonic()
    if not clients and time.monotonic() - state["since"] > state["timeout"]:
        sys.exit(0)
