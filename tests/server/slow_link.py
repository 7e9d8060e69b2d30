# SPDX-License-Identifier: Apache-2.0
"""A second link between two network namespaces whose packets arrive later, or are lost: what netem does, for kernels without it.

Two TUN devices, one in each namespace; threads of this process carry the packets in between.  Whoever wants packets to go that way, routes them.
"""
import collections
import contextlib
import fcntl
import os
import struct
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000
NAME = "slow"
PACKET = 65536


def open_tun():
    """A new device in the calling thread's namespace; OSError where there is none to be had."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", NAME.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(fd)
        raise
    return fd


def in_thread(function):
    """Its result, of a thread whose namespace nobody else has."""
    answer = []

    def run():
        try:
            answer.append((function(), None))
        except OSError as error:
            answer.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = answer[0]
    if error:
        raise error
    return result


class SlowLink:
    """delay_s: of packets from now on; keep, of: so many of each so many packets arrive.  lost, carried: how many did not, and how many did."""

    def __init__(self, enter_far):
        """enter_far(): puts the calling thread into the other namespace."""
        self.delay_s, self.keep, self.of = 0.0, 1, 1
        self.lost = self.carried = 0

        def far():
            enter_far()
            return open_tun()

        self.ends = [open_tun()]
        try:
            self.ends.append(in_thread(far))
        except OSError:
            os.close(self.ends[0])
            raise
        for source, sink in (self.ends, self.ends[::-1]):
            pieces, ready = collections.deque(), threading.Condition()
            threading.Thread(target=self.read, args=(source, pieces, ready), daemon=True).start()
            threading.Thread(target=self.write, args=(sink, pieces, ready), daemon=True).start()

    def read(self, source, pieces, ready):
        count = 0
        while True:
            try:
                packet = os.read(source, PACKET)
            except OSError:
                # Before it is up.
                time.sleep(0.01)
                continue
            count += 1
            # By counting and not by chance: then it is known that some are lost.
            if count % self.of >= self.keep:
                self.lost += 1
                continue
            with ready:
                pieces.append((time.monotonic() + self.delay_s, packet))
                ready.notify()

    def write(self, sink, pieces, ready):
        while True:
            with ready:
                while not pieces:
                    ready.wait()
                at, packet = pieces.popleft()
            time.sleep(max(0.0, at - time.monotonic()))
            with contextlib.suppress(OSError):
                os.write(sink, packet)
                self.carried += 1
