#!/usr/bin/python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's nvidia-cuda-mps-control as far as the server uses it: -f is the daemon, and without an option it asks the daemon what it reads.

Beside this file: `told` has a line for each command (its process ID, user and directory, then the command, and whether a client to be
terminated lives), `daemons` one for each daemon.  A file
`broken` keeps daemons from starting; a file `silent` keeps them from answering.  Its clients are the workers of its user.

The server waits two seconds for a daemon, so Python starts here without what takes it long.
"""
import os
import signal
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PIPES = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
SERVER = 4000000  # the process ID of its one server
os.umask(0)  # several users write beside this file


def note(name, *words):
    with open(os.open(os.path.join(HERE, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), "a", encoding="utf-8") as f:
        f.write(" ".join(map(str, words)) + "\n")


def clients():
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                name = f.read().split("(")[1].rsplit(")", 1)[0]
            if entry.isdigit() and name == "cricket-worker" and os.stat(f"/proc/{entry}").st_uid == os.geteuid():
                yield entry
        except (OSError, IndexError):
            pass


def answer(command):
    words = command.split()
    lives = [os.path.exists(f"/proc/{words[2]}")] if words[0] == "terminate_client" else []
    note("told", os.getpid(), os.geteuid(), PIPES, command, *lives)
    if words == ["get_server_list"]:
        return f"{SERVER}\n"
    if words[:2] == ["get_client_list", str(SERVER)]:
        return "".join(f"{client}\n" for client in clients())
    return ""


def serve():
    if os.path.exists(os.path.join(HERE, "broken")):
        sys.exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.makedirs(os.environ["CUDA_MPS_LOG_DIRECTORY"], exist_ok=True)
    with open(os.path.join(os.environ["CUDA_MPS_LOG_DIRECTORY"], "control.log"), "a", encoding="utf-8") as f:
        f.write("started\n")
    path = os.path.join(PIPES, "control")
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    note("daemons", os.getpid(), os.geteuid(), PIPES, os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
    while True:
        peer = listener.accept()[0]
        while os.path.exists(os.path.join(HERE, "silent")):
            signal.pause()
        command = peer.recv(4096).decode().strip()
        peer.sendall(answer(command).encode())
        peer.close()
        if command == "quit":
            sys.exit(0)


def ask():
    for command in sys.stdin:
        daemon = socket.socket(socket.AF_UNIX)
        daemon.connect(os.path.join(PIPES, "control"))
        daemon.sendall(command.encode())
        while piece := daemon.recv(4096):
            sys.stdout.write(piece.decode())


serve() if sys.argv[1:] == ["-f"] else ask()
