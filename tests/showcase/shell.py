# SPDX-License-Identifier: Apache-2.0
"""A bash in a scratch home with what would be installed, for the recording and for the commands of documents."""
import contextlib
import ctypes
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "runner"))
import runner  # noqa: E402

GUARD_S = 120  # after which a command is given up; nothing is measured by it


def documents_block(name, path="docs/tutorial.md"):
    """The file that a document writes by `cat >NAME <<'END'`."""
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = f.read()
    found = re.search(r"(?m)^    \$ cat >%s <<'END'\n((?:    .*\n|\n)*?)    END$" % re.escape(name), text)
    if not found:
        raise runner.Failure(f"{path} writes no {name}")
    return re.sub(r"(?m)^    ", "", found.group(1))


class Terminal:
    """A pseudo-terminal whose output is read on and on."""

    def __init__(self, columns, lines=40):
        self.primary, self.secondary = pty.openpty()
        fcntl.ioctl(self.secondary, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.text = ""

    def read(self):
        while select.select([self.primary], [], [], 0)[0]:
            self.text += os.read(self.primary, 65536).decode("utf-8", "replace")
        return self.text

    def lines(self):
        """What stands there at last: a line that was drawn again counts once."""
        return [line.rstrip("\r").split("\r")[-1].split("\x1b[K")[-1].rstrip() for line in self.read().split("\n")]


def adopt_orphans():
    """Workers whose server was killed become children of this process, so that close() finds them."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Shell:
    """Runs commands one after the other in one bash: what one exports or starts is there for the next."""

    def __init__(self, build, columns=None, prefix=None):
        adopt_orphans()
        self.count = 0
        self.root = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.root, 0o755)
        self.home = os.path.join(self.root, "home")
        os.mkdir(self.home)
        tree = os.path.abspath(prefix or runner.stage(build))
        env = runner.clean_environment()
        path = os.pathsep.join([os.path.join(tree, "bin"), os.environ.get("CKT_TEST_NVCC_DIR", ""), env.get("PATH", ""), "/usr/sbin", "/sbin"])
        env.update(HOME=self.home, PATH=path, STATE_DIRECTORY=self.root, CACHE_DIRECTORY=self.root, XDG_RUNTIME_DIR=self.home,
                   TERM="xterm", LC_ALL="C.UTF-8", TMPDIR=self.root)
        self.terminal = Terminal(columns) if columns else None
        self.end, write_end = os.pipe()
        out = self.terminal.secondary if columns else open(os.path.join(self.root, "output"), "wb")
        # A group of its own, which close() ends, whatever a command has left.
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=self.home, env=env,
                                     pass_fds=[write_end], start_new_session=True)
        self.end_fd = write_end
        os.close(write_end)

    def run(self, command, guard_s=GUARD_S):
        """The exit status, and what came on stdout and stderr; of a terminal: nothing, look there."""
        # A file of its own: what an earlier command left running has that of its own.
        self.count += 1
        out = os.path.join(self.root, f"said-{self.count}")
        redirect = "" if self.terminal else f" >{out} 2>&1"
        self.bash.stdin.write(f"{{\n{command}\n}}{redirect} </dev/null {self.end_fd}>&-\necho $? >&{self.end_fd}\n".encode())
        self.bash.stdin.flush()
        status, deadline = b"", time.monotonic() + guard_s
        while not status.endswith(b"\n"):
            if self.terminal:
                self.terminal.read()
            if select.select([self.end], [], [], 0.05)[0]:
                more = os.read(self.end, 64)
                if not more:
                    raise runner.Failure(f"the shell ended at: {command}")
                status += more
            if time.monotonic() > deadline:
                raise runner.Failure(f"after {guard_s} s it had not ended: {command}\n{self.said(out)}")
        return int(status), "" if self.terminal else self.said(out)

    @staticmethod
    def said(path):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8", errors="replace") as f:
                return f.read()
        return ""

    def close(self):
        """Ends everything that it started: the group, and servers' workers, which have groups of their own."""
        left = self.descendants(os.getpid())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.bash.pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.bash.stdin.close()
        self.bash.wait()
        os.close(self.end)
        shutil.rmtree(self.root, ignore_errors=True)

    def descendants(self, pid):
        found = []
        for child in runner.children_of(pid):
            found += [child, *self.descendants(child)]
        return found
