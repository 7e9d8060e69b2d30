#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration behind `./run demo`: CUDA programs on a machine without a GPU, one of them moved between servers half way."""

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import runner

PROGRAMS = ("saxpy-static", "matmul-shared", "reduce-static", "nbody-shared", "mandelbrot-static", "printf-static", "saxpy-stripped")


def say(line):
    print(line, flush=True)


def steps_for(image):
    """Fewer steps for a large picture, so that the interpreter is done within a minute."""
    if not image:
        return 16
    with open(image, "rb") as f:
        head = f.read(24)
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        raise runner.Failure(f"{image} is not a PNG file")
    width, height = struct.unpack(">II", head[16:24])
    return max(4, min(16, 12_000_000 // max(1, width * height) // 2 * 2))


def run_programs(tree, programs, directory, address):
    for name in PROGRAMS:
        start = time.monotonic()
        own = tempfile.mkdtemp(dir=directory)
        program = runner.Program(own, [tree.tool("cricket-run"), "--server", address, os.path.join(programs, name)],
                                 runner.clean_environment())
        code, out, err = program.wait(120)
        if code != 0:
            raise runner.Failure(f"{name} exited {code}:\n{runner.text(out)}{runner.text(err)}")
        say(f"   {name:20} {time.monotonic() - start:5.1f} s   {runner.text(out).strip().splitlines()[-1]}")


def filter_image(tree, program, directory, server, image, output, steps, interrupt=None):
    """Runs the image filter; interrupt(session, phase file) is called half way."""
    env = runner.clean_environment()
    point = os.path.join(directory, "half-way")
    if interrupt:
        env["CKT_TEST_PHASE_FILE"] = point
        env["CRICKET_STANDBY"] = interrupt.standby
    own = tempfile.mkdtemp(dir=directory)
    started = runner.Program(own, [tree.tool("cricket-run"), "--server", server.address, program, image or "-", output, str(steps)], env)
    try:
        if interrupt:
            started.wait_ready(point + ".ready", 300)
            interrupt(started.process.pid)
            with open(point + ".go", "w", encoding="utf-8"):
                pass
        code, out, err = started.wait(600)
        if code != 0:
            raise runner.Failure(f"the image filter exited {code}:\n{runner.text(out)}{runner.text(err)}")
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait()


class Move:
    """Half way: checkpoint the session and stop it, kill its server, restore it on the other one."""

    def __init__(self, tree, first, second, image_dir):
        self.tree, self.first, self.second, self.image_dir = tree, first, second, image_dir
        self.standby = second.address

    def __call__(self, pid):
        session = runner.sessions_of(self.tree, self.first)[0]
        say(f"   half way: session {session['session']} of {session['program']} (pid {pid})")
        start = time.monotonic()
        runner.cricketctl(self.tree, "--server", self.first.address, "checkpoint", session["session"], self.image_dir, "--stop")
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(self.image_dir) for f in files)
        say(f"   cricketctl checkpoint {session['session']} {self.image_dir} --stop   ({size / 1024:.0f} KiB, {time.monotonic() - start:.2f} s)")
        self.first.kill()
        say(f"   kill -9 of the server at {self.first.address}")
        start = time.monotonic()
        runner.cricketctl(self.tree, "restore", self.image_dir, "--server", self.second.address)
        say(f"   cricketctl restore {self.image_dir} --server {self.second.address}   ({time.monotonic() - start:.2f} s)")


def nvrtc_only(tree, arg, directory):
    """Without nvcc: a program that compiles its kernel itself."""
    server = runner.Server(tree, os.path.join(directory, "server"))
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "nvrtc_saxpy.py")
    say("== no nvcc: the C++ programs, the image filter and its checkpoint are left out; a program with NVRTC instead")
    done = subprocess.run([tree.tool("cricket-run"), "--server", server.address, arg.python, source], env=runner.clean_environment(), check=False)
    server.stop()
    return done.returncode


def demo(arg, directory):
    tree = runner.Tree(runner.stage(arg.build) if arg.build else arg.prefix)
    if arg.python:
        return nvrtc_only(tree, arg, directory)
    programs = arg.programs or os.path.join(arg.build, "tests", "programs")
    out = arg.output
    os.makedirs(out, exist_ok=True)
    # The server sees the picture's path only in the program's arguments, which never leave the program's process.
    image = os.path.abspath(arg.image) if arg.image else None
    steps = steps_for(image)
    whole, moved, state = (os.path.join(out, name) for name in ("uninterrupted.png", "moved.png", "checkpoint"))
    shutil.rmtree(state, ignore_errors=True)
    first = runner.Server(tree, os.path.join(directory, "first"))
    second = runner.Server(tree, os.path.join(directory, "second"))
    try:
        say(f"== a cricket-server on the soft GPU listens at {first.address}, a second one at {second.address}")
        say("== CUDA programs as nvcc made them, each in a process with nothing but the client library (cricket-run):")
        run_programs(tree, programs, directory, first.address)
        pngfilter = os.path.join(programs, "pngfilter-static")
        say(f"== an image filter ({steps} steps), uninterrupted")
        filter_image(tree, pngfilter, directory, first, image, whole, steps)
        say("== the same, moved half way")
        filter_image(tree, pngfilter, directory, first, image, moved, steps, Move(tree, first, second, state))
        with open(whole, "rb") as a, open(moved, "rb") as b:
            if a.read() != b.read():
                raise runner.Failure(f"{whole} and {moved} differ")
        second.stop()
        say(f"== both pictures are the same, byte for byte: {os.path.relpath(moved)}")
        return 0
    finally:
        first.kill()
        second.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", metavar="DIR", help="a Meson build directory")
    parser.add_argument("--prefix", metavar="DIR", help="an unpacked bundle (with --programs)")
    parser.add_argument("--programs", metavar="DIR")
    parser.add_argument("--image", metavar="FILE.png")
    parser.add_argument("--output", metavar="DIR", default="build/demo")
    parser.add_argument("--python", metavar="PYTHON", help="run the NVRTC program alone with this interpreter")
    directory = tempfile.mkdtemp(prefix="ckt-")
    os.chmod(directory, 0o755)
    try:
        return demo(parser.parse_args(), directory)
    except runner.Failure as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
