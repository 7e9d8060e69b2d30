#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A worker without CUDA: rpc/worker.x and a hello, nothing else.  Lets the server's tests misbehave on purpose.

CRICKET_SOFT_FAKE (passed on by the server as every CRICKET_SOFT_*) holds words: slow (START takes until the file CRICKET_SOFT_GO exists), refuse (START fails),
nodevice, crash (dies in START), deaf (ignores KILL), garbage (answers STATUS with garbage), nomemory
(UNPAUSE finds no memory until the file CRICKET_SOFT_MEMORY exists), badsave (SAVE2 fails), slowsave (SAVE2 takes a second),
waitsave (SAVE2 makes the file CRICKET_SOFT_SAVE.begun and waits for CRICKET_SOFT_SAVE.go, and takes both away),
strict (refuses a client with another secret), curious (asks file brokers for what is none of its business and says on stderr what it got).
"""
import contextlib
import hashlib
import os
import resource
import select
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from wire import text, u32, u64  # noqa: E402

if sys.argv[1:] == ["--compiler"]:
    # The process that compiles for workers: it compiles nothing, and ends with the server.
    with socket.socket(fileno=3) as compiler:
        while compiler.recv(1):
            pass
    sys.exit()
MODE = os.environ.get("CRICKET_SOFT_FAKE", "").split()
listener = socket.socket(fileno=3)
state = {"session": "", "hello": None, "peer_uid": 0xFFFFFFFF, "timeout": 8.0, "since": time.monotonic(), "started": int(time.time()), "generation": 1,
         "uid": 0, "origin": None, "secret": hashlib.sha256(b"").digest(), "seal": (bytes(16), bytes(32))}
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


def secret_hash():
    if state["origin"]:
        return state["origin"][1]
    return state["secret"]


def manifest():
    """What stands in for one: session, generation, owner, hash of the secret, key and seal."""
    key, seal = state["seal"]
    return " ".join([state["session"], str(state["generation"]), str(state["uid"]), secret_hash().hex(), key.hex(), seal.hex()])


def read_manifest(data):
    words = data.split()
    state["session"] = words[0]
    generation, uid, secret, key, seal = words[1:] if len(words) == 6 else ("0", "0", "00" * 32, "00" * 16, "00" * 32)
    state["origin"] = (int(uid), bytes.fromhex(secret), int(generation), bytes.fromhex(key), bytes.fromhex(seal))
    state["generation"] = int(generation) + 1


def owner(r, _fds):
    state["uid"], state["seal"] = r.u32(), (r.take(16), r.take(32))
    r.done()
    return b""


def origin(_r, _fds):
    uid, secret, generation, key, seal = state["origin"]
    return text(state["session"]) + u32(uid) + secret + u64(generation) + key + seal


def status():
    hello = state["hello"] or {"program": "", "host": "", "pid": 0}
    return (text(state["session"]) + u32(6 if state.get("paused") else 4 if state.get("held") else 1 if clients else 3 if state.get("restored") else 2) + text(hello["program"]) + text(hello["host"]) +  # noqa: E501
            u32(hello["pid"]) + u32(state["uid"]) + u32(os.getpid()) + u32(0) + u64(4096) + u64(state["started"]) +
            secret_hash() + u64(state["generation"]) +
            u64(5) + text(describe_process()[:512]))


def pry(broker, what):
    """Asks for everything that is not the image's to give."""
    wrong = [(1 - what, 0, n) for n in (wire.MANIFEST, 0)] + [(what, d, n) for d, n in ((1, 0), (64, 0), (0xFFFFFFFF, 0), (0, 256), (0, 0xFFFFFFFE))]
    wrong += [(2, 0, 0), (0xFFFFFFFF, 0, 0)]
    for ask in wrong:
        try:
            os.close(wire.broker_open(broker, *ask))
            print("curious: opened %s" % (ask,), file=sys.stderr, flush=True)
        except OSError:
            pass
    print("curious: %s: opened none of %d" % ("make" if what == wire.MAKE else "read", len(wrong)), file=sys.stderr, flush=True)


def start(r, fds):
    state["session"], _, state["driver"] = r.text(), r.text(), r.text()
    state["gpus"] = [r.u32() for _ in range(r.u32())]
    state["limit"], claim, disconnect, restore, state["host_limit"], state["staging"] = r.u64(), r.u32(), r.u32(), r.u32(), r.u64(), r.u64()
    r.done()
    state["timeout"], state["claim"] = disconnect / 1000, claim / 1000
    while "slow" in MODE and not os.path.exists(os.environ["CRICKET_SOFT_GO"]):
        time.sleep(0.01)
    if "crash" in MODE:
        os.kill(os.getpid(), 11)
    if "refuse" in MODE:
        return u32(-5) + text("refused on purpose")
    if "nodevice" in MODE:
        return u32(-19) + text("no device on purpose")
    if restore and state.get("memory"):
        read_manifest(os.pread(state["memory"][0], 1000, 0).decode())
        state["restored"], state["timeout"] = True, state["claim"]
    elif restore:
        broker = socket.socket(fileno=fds.pop())
        if "curious" in MODE:
            pry(broker, wire.READ)
        try:
            with open(wire.broker_open(broker, wire.READ, 0, wire.MANIFEST)) as f:
                read_manifest(f.read())
        except OSError as error:
            return u32(-error.errno) + text("manifest: " + error.strerror)
        broker.close()
        state["restored"], state["timeout"] = True, state["claim"]
        for index, fd in state.get("images", []):
            with open(wire.broker_open(fd, wire.READ, index, wire.MANIFEST)) as f:
                if f.read().split()[0] != state["session"]:
                    return u32(-74) + text("image %d is another session's" % index)
    return u32(0) + text("")


def preload(r, fds):
    """A start whose session does not run yet."""
    answer = start(r, fds)
    state["session"], state["restored"] = "", False
    while state.get("images"):
        state["images"].pop()[1].close()
    return answer


def client(r, fds):
    xid, hello = r.u32(), wire.parse_hello_args(r)
    state["hello"] = hello
    if state["secret"] == hashlib.sha256(b"").digest():
        state["secret"] = hashlib.sha256(state["hello"]["secret"]).digest()
    state["peer_uid"], state["peer"] = r.u32(), r.text()
    r.done()
    sock = socket.socket(fileno=fds.pop())
    assert sock.getblocking() or True
    if "strict" in MODE and hashlib.sha256(hello["secret"]).digest() != state["secret"]:
        wire.write_record(sock, wire.reply_header(xid) + u32(wire.DENIED) + text("wrong secret") + text(""))
        sock.close()
        return u32(wire.DENIED)
    clients.append(sock)
    wire.write_record(sock, wire.reply_header(xid, 5) + wire.hello_ok(state["session"], executed=5))
    return u32(0)


def save(r, fds):
    stop = r.u32()
    r.u32()
    broker = socket.socket(fileno=fds.pop())
    with open(wire.broker_open(broker, wire.MAKE, 0, wire.MANIFEST), "w") as f:
        f.write(manifest())
    broker.close()
    state["stop"] = bool(stop)
    return u32(0) + text("") + u64(12)


def wait_for_go():
    """Until it is told to go on, or the test has taken its directory away."""
    begun, go = (os.environ["CRICKET_SOFT_SAVE"] + suffix for suffix in (".begun", ".go"))
    open(begun, "w").close()
    while os.path.exists(begun) and not os.path.exists(go):
        time.sleep(0.02)
    for path in (begun, go):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def save2(r, fds):
    """deadline, compress, incremental, base, to_memory, hold, keep_hashes"""
    r.u32(), r.u32()
    incremental, base, to_memory, hold, _keep = r.u32(), r.take(16), r.u32(), r.u32(), r.u32()
    r.done()
    if incremental and base != state.get("image"):
        return u32(-116) + text("the image is not the last one") + bytes(16) + 4 * u64(0)
    if "badsave" in MODE:
        return u32(-28) + text("no space on purpose") + bytes(16) + 4 * u64(0)
    if "slowsave" in MODE:
        time.sleep(1)
    if "waitsave" in MODE:
        wait_for_go()
    state["image"] = os.urandom(16)
    content = manifest().encode()
    if to_memory:
        files = state["memory"]
        os.write(files[0], content)
        os.write(files[1], b"x" * (3 << 20))
        while files:
            os.close(files.pop())
    else:
        broker = socket.socket(fileno=fds.pop())
        if "curious" in MODE:
            pry(broker, wire.MAKE)
        for number, data in ((wire.MANIFEST, content), (0, b"x" * (3 << 20) if not incremental else b"y" * 5000), (1, b"")):
            try:
                with open(wire.broker_open(broker, wire.MAKE, 0, number), "wb") as f:
                    f.write(data)
            except OSError as error:
                broker.close()
                return u32(-error.errno) + text("%x: %s" % (number, error.strerror)) + bytes(16) + 4 * u64(0)
        broker.close()
    state["held"] = bool(hold)
    state["saves"] = state.get("saves", 0) + 1
    changed = max(4096 >> state["saves"], 1)
    return u32(0) + text("") + state["image"] + u64(len(content)) + u64(4096) + u64(changed) + u64(77)


def release(r, fds):
    end, parked = r.u32(), r.u32()
    message, moved = r.text(), r.text()
    r.done()
    if not state.get("held"):
        return u32(-22) + text("not held") + u64(0)
    state["held"] = False
    for sock in clients if end and (parked or moved) else []:
        wire.write_record(sock, wire.call_header(0, wire.CALLBACK, 3 if moved else 4) + text(moved or message))
    state["stop"] = bool(end)
    return u32(0) + text("") + u64(0)


def pause(r, fds):
    r.u32()
    if state.get("paused"):
        return u32(-22) + text("already paused") + u64(0)
    state["paused"] = True
    return u32(0) + text("") + u64(4096)


def unpause(r, fds):
    if not state.get("paused"):
        return u32(-22) + text("not paused") + u64(0)
    if "nomemory" in MODE and not os.path.exists(os.environ["CRICKET_SOFT_MEMORY"]):
        return u32(-12) + text("no memory") + u64(1234)
    state["paused"] = False
    return u32(0) + text("") + u64(4096)


def swap_facts(status, message="", moved=0):
    return u32(status) + text(message) + u32(state.get("swapped", 0)) + u64(4096) + u64(moved) + 8 * u64(0)


def swap_out(r, fds):
    """Writes more than it says where it is told to lie."""
    fd = fds.pop()
    os.pwrite(fd, bytes(4096), (96 << 20) if "swap-lie" in MODE else 0)
    if "swap-lie" in MODE:
        for offset in range(0, 96 << 20, 1 << 20):
            os.pwrite(fd, bytes(1 << 20), offset)
    os.close(fd)
    state["swapped"] = 1
    return swap_facts(0, moved=4096)


def swap_in(r, fds):
    if not state.get("swapped"):
        return swap_facts(-22, "the session is not swapped")
    state["swapped"] = 0
    return swap_facts(0)


def image(r, fds):
    state.setdefault("images", []).append((r.u32(), socket.socket(fileno=fds.pop())))
    return u32(0) + text("") + u64(0)


def memory(r, fds):
    index, fd = r.u32(), fds.pop()
    r.done()
    files = state.setdefault("memory", [])
    if index == 0:
        while files:
            os.close(files.pop())
    if index != len(files) or index > 16:
        os.close(fd)
        return u32(-22) + text("out of order") + u64(0)
    files.append(fd)
    return u32(0) + text("") + u64(0)


def stats(_r, _fds):
    calls = [("transport:unix", 2, 0, 0, 0), ("cuMemAlloc", 3, 0, 3, 300), ("cuLaunchKernel", 1000, 1000, 0, 64000)]
    return u32(len(calls)) + b"".join(text(c[0]) + b"".join(u64(n) for n in c[1:]) for c in calls)


def trace(_r, _fds):
    """A trace that has no records."""
    return u32(0) + text("") + u64(1) + u64(0) + u32(0) + u32(0)


def asker_gone(sock):
    """As the real worker looks for it, before what nobody would take back."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))


def serve(sock):
    fds = []
    xid, prog, proc, r = wire.parse_call(wire.read_record(sock, fds))
    assert prog == wire.WORKER
    if proc in (5, 8, 10) and asker_gone(sock):
        raise wire.Closed
    if proc == 6 and "deaf" in MODE:
        return
    if proc == 3 and "garbage" in MODE:
        wire.write_record(sock, b"garbage")
        return
    answers = {0: lambda r, f: b"", 1: start, 2: client, 3: lambda r, f: status(), 4: stats, 5: save, 6: lambda r, f: b"", 7: image, 8: save2,
               9: release, 10: pause, 11: unpause, 12: lambda r, f: text("save") + u64(1) + u64(2), 13: memory, 14: preload, 19: owner, 20: origin, 21: lambda r, f: text(""),
               25: lambda r, f: b"", 26: lambda r, f: b"", 27: trace, 29: lambda r, f: b"",
               35: swap_out, 36: swap_in, 37: lambda r, f: swap_facts(0),
               30: lambda r, f: u32(1) + u32(0), 31: lambda r, f: u32(0) + u32(0)}
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
            except (wire.Closed, BrokenPipeError):  # a server that was killed reads no answer
                controls.remove(sock)
                sock.close()
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
