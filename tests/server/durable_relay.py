# SPDX-License-Identifier: Apache-2.0
"""A relay between a client and its server that stops the stream at chosen bytes, to take images and to kill workers there."""
import contextlib
import os
import socket
import threading


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
        while self.stops and self.carried + len(data) >= self.stops[0][0]:
            at, act = self.stops.pop(0)
            now = max(0, at - self.carried)
            far.sendall(data[:now])
            self.carried += now
            data = data[now:]
            with self.acting:
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
            while True:
                data = near.recv(65536)
                if not data or not self._up(far, data):
                    break
        except OSError:
            pass
        for end in (near, far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        down.join()
        near.close()
        far.close()

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
