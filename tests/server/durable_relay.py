# SPDX-License-Identifier: Apache-2.0
"""A relay between a client and its server that stops the stream at chosen bytes, to take images and to kill workers there."""
import contextlib
import os
import socket
import threading

MEMCPY_HTOD = 64  # as in rpc/api/cuda.api


class Relay:
    """address: for the client. stops: (bytes of the client's stream, function) in ascending order; the stream stands while one runs."""

    def __init__(self, directory, upstream, unix):
        self.upstream = upstream
        self.stops = []
        self.carried = 0
        self.acting = threading.Lock()
        self.error = None
        self.ended = False
        if unix:
            path = os.path.join(directory, "relay")
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.address = "unix:" + path
        else:
            self.listener = socket.socket()
            self.listener.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        # Of connections after the first: the last byte of the first copy to the device is another one.
        self.corrupt = False
        self.connections = 0
        self.listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _connect(self):
        if self.upstream.startswith("unix:"):
            end = socket.socket(socket.AF_UNIX)
            end.connect(self.upstream[5:])
            return end
        host, port = self.upstream.rsplit(":", 1)
        return socket.create_connection((host, int(port)))

    def _accept(self):
        while not self.ended:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _up(self, far, data):
        """Passes on what the client sent, with the stops in between.  False: the connection was cut."""
        while (stops := self.stops) and self.carried + len(data) >= stops[0][0]:
            now = max(0, stops[0][0] - self.carried)
            far.sendall(data[:now])
            self.carried += now
            data = data[now:]
            with self.acting:
                # Whoever has closed the relay goes on with other sessions, of which nobody may die.
                if self.stops is not stops:
                    break
                _, act = stops.pop(0)
                try:
                    if act() == "cut":
                        return False
                except Exception as error:  # the test says it
                    self.error = self.error or error
                    return False
        far.sendall(data)
        self.carried += len(data)
        return True

    def _carry(self, near):
        try:
            far = self._connect()
        except OSError:
            near.close()
            return
        for end in (near, far):
            if end.family == socket.AF_INET:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A thread for each direction: one that waited for both to take everything would stop a worker that waits for its client.
        down = threading.Thread(target=self._carry_down, args=(far, near), daemon=True)
        down.start()
        try:
            self.connections += 1
            pending = b"" if self.corrupt and self.connections > 1 else None
            while True:
                data = near.recv(65536)
                if not data:
                    break
                if pending is not None:
                    pending, data = self._corrupted(pending + data)
                if not self._up(far, data):
                    break
        except OSError:
            pass
        for end in (near, far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        down.join()
        near.close()
        far.close()

    def _corrupted(self, data):
        """(what is no whole record, what goes on)"""
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at:at + 4], "big") & 0x7fffffff
            if len(data) - at < 4 + size:
                break
            at += 4 + size
            if self.corrupt and size > 1000 and int.from_bytes(data[at - size + 20:at - size + 24], "big") == MEMCPY_HTOD:
                self.corrupt = False
                data = data[:at - 1] + bytes((data[at - 1] ^ 1,)) + data[at:]
        return data[at:], data[:at]

    @staticmethod
    def _carry_down(far, near):
        try:
            while True:
                data = far.recv(65536)
                if not data:
                    break
                near.sendall(data)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)

    def close(self):
        """The client may be gone before what was done at its last bytes."""
        self.ended = True
        with self.acting:
            self.stops = []
        self.listener.close()
