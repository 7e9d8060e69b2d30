# SPDX-License-Identifier: Apache-2.0
"""A network between a program and its server: a round-trip time, a bandwidth, and a count of round trips and of bytes.

The proxy takes connections at 127.0.0.1 and carries their bytes to a server, each piece half a round trip later and not faster than the
bandwidth.  A turn is a piece from the program behind one from the server, seen where the program is: the program had to hear before it
spoke.  Each connection costs one round trip more, for its opening.  With a round-trip time well above the program's own pauses the count
does not depend on the machine.
"""

import collections
import contextlib
import socket
import threading
import time

PIECE = 256 << 10


class Way:
    """One direction of a connection: a thread that reads, and one that writes later."""

    def __init__(self, proxy, source, sink, heard):
        self.proxy, self.source, self.sink, self.heard = proxy, source, sink, heard
        self.pieces = collections.deque()
        self.ready = threading.Condition()
        for run in (self.read, self.write):
            threading.Thread(target=run, daemon=True).start()

    def read(self):
        while True:
            try:
                piece = self.source.recv(PIECE)
            except OSError:
                piece = b""
            # What the program sends is heard here when it sends it.
            if piece and self.heard:
                self.proxy.program_speaks(self.source, len(piece))
            with self.ready:
                self.pieces.append((time.monotonic() + self.proxy.rtt_s / 2, piece))
                self.ready.notify()
            if not piece:
                return

    def write(self):
        free_at = 0.0
        while True:
            with self.ready:
                while not self.pieces:
                    self.ready.wait()
                at, piece = self.pieces.popleft()
            if self.proxy.bytes_per_s:
                free_at = max(free_at, at - self.proxy.rtt_s / 2) + len(piece) / self.proxy.bytes_per_s
                at = max(at, free_at + self.proxy.rtt_s / 2)
            time.sleep(max(0.0, at - time.monotonic()))
            with contextlib.suppress(OSError):
                if not piece:
                    self.sink.shutdown(socket.SHUT_WR)
                    return
                if not self.heard:
                    self.proxy.server_speaks(self.sink, len(piece))
                self.sink.sendall(piece)


class Proxy:
    """Carries connections to `address` (HOST:PORT) until close; its own address is in .address."""

    def __init__(self, address, rtt_s=0.0, bytes_per_s=0):
        self.rtt_s, self.bytes_per_s = rtt_s, bytes_per_s
        host, port = address.rsplit(":", 1)
        self.target = (host.strip("[]"), int(port))
        self.lock = threading.Lock()
        self.turns = self.connections = 0
        # From the program, and to it.
        self.bytes_up = self.bytes_down = 0
        self.heard_last = {}
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                program, _ = self.listener.accept()
                server = socket.create_connection(self.target)
                for end in (program, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self.lock:
                    self.connections += 1
                    self.sockets += [program, server]
                Way(self, program, server, True)
                Way(self, server, program, False)

    def program_speaks(self, program, size):
        with self.lock:
            self.bytes_up += size
            self.turns += self.heard_last.pop(program, False)

    def server_speaks(self, program, size):
        with self.lock:
            self.bytes_down += size
            self.heard_last[program] = True

    @property
    def round_trips(self):
        with self.lock:
            return self.turns + self.connections

    def close(self):
        for end in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
