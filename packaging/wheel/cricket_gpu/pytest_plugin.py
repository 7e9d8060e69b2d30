# SPDX-License-Identifier: Apache-2.0
"""pytest --cuda-soft, --cuda-remote: the test process, and all that it starts, runs under cricket-run.

	pytest --cuda-soft		this module finds the option and replaces the process:
	  cricket-run --soft -- ...	the same command again, now with Cricket's libraries
	    pytest --cuda-soft		finds the mark of its own in the environment and goes on

The process is replaced before conftest.py is imported, and before pytest redirects its output.  Without an option the plugin does nothing.
"""

import collections
import os
import sys
import tempfile

import pytest

# What the run is under.  Not CRICKET_..., which is for variables that Cricket's programs know.
MARK = "_CRICKET_GPU_PYTEST"
REFUSALS = "CRICKET_REFUSALS"
# pytest shows no more of a peer's text than this.
LINES_MAX, LINE_MAX = 200, 300


def pytest_addoption(parser):
    group = parser.getgroup("cricket", "CUDA by Cricket")
    group.addoption("--cuda-soft", action="store_true", help="run the tests on a soft GPU, a CUDA driver on the CPU")
    group.addoption("--cuda-soft-devices", metavar="DEVICES",
                    help="the soft GPU's devices, [COUNTx]CAPABILITY[:MEMORY][,...]: 2x9.0:4G is two of capability 9.0 with 4 GiB each; implies --cuda-soft")
    group.addoption("--cuda-remote", metavar="HOST", help="run the tests on the GPU of a Cricket server: HOST, HOST:PORT or unix:PATH")


def wanted(options):
    """The arguments of cricket-run, what to set in its environment, and words for the header; None without an option."""
    soft = options.cuda_soft or options.cuda_soft_devices is not None
    if options.cuda_remote is None and not soft:
        return None
    if options.cuda_remote is not None:
        address = options.cuda_remote
        if soft:
            raise pytest.UsageError("--cuda-remote and --cuda-soft exclude each other: remove one")
        if not address.strip() or address.startswith("-") or any(ord(c) < 33 or ord(c) == 127 for c in address):
            raise pytest.UsageError(f"--cuda-remote {address!r}: not an address; write HOST, HOST:PORT or unix:PATH")
        return ["--server", address], {}, f"server {address}"
    if options.cuda_soft_devices is None:
        return ["--soft"], {}, "soft GPU"
    from . import devices

    try:
        value = devices.parse(options.cuda_soft_devices)
    except ValueError as error:
        raise pytest.UsageError(f"--cuda-soft-devices: {error}") from None
    return ["--soft"], {"CRICKET_SOFT_DEVICES": value}, f"soft GPU, devices {value}"


def cricket_run():
    """The path of cricket-run.  Usage errors: what keeps it from starting a program."""
    import cricket_gpu

    path = cricket_gpu.cricket_run
    if not os.access(path, os.X_OK):
        raise pytest.UsageError(f"{path}: cannot be executed; install cricket-gpu again")
    libraries = os.environ.get("CRICKET_LIBDIR") or cricket_gpu.lib_directory
    if any(c in libraries for c in " :"):
        raise pytest.UsageError(f"the path {libraries} holds a space or a colon, which LD_PRELOAD cannot hold: "
                                "make a link to this directory elsewhere and name the link in CRICKET_LIBDIR")
    return path


def command_again(config):
    """The command line that started pytest."""
    if list(config.invocation_params.args) != sys.argv[1:]:
        raise pytest.UsageError("the program that called pytest.main() cannot be started again: start it with cricket-run, "
                                "and remove the options --cuda-soft, --cuda-soft-devices and --cuda-remote")
    return [sys.executable, *sys.orig_argv[1:]]


def run_again(config, arguments, variables, mark):
    program = cricket_run()
    command = [program, *arguments, "--", *command_again(config)]
    os.chdir(config.invocation_params.dir)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, command, {**os.environ, **variables, MARK: mark})
    except OSError as error:
        raise pytest.UsageError(f"{program}: {error.strerror}") from None


class Refusals:
    """The file to which all processes of the run append what was refused."""

    def __init__(self):
        self.path = os.environ.get(REFUSALS)
        self.own = not self.path
        if self.own:
            fd, self.path = tempfile.mkstemp(prefix="cricket-refusals-")
            os.close(fd)
            os.environ[REFUSALS] = self.path
        try:
            self.begin = os.path.getsize(self.path)
        except OSError:
            self.begin = 0
        self.owner = os.getpid()
        self.seen = self.begin
        self.tests = {}

    def lines(self, begin):
        """The complete lines from an offset on, and the offset behind them."""
        try:
            with open(self.path, "rb") as file:
                file.seek(begin)
                text = file.read(1 << 24)
        except OSError:
            return [], begin
        text = text[:text.rfind(b"\n") + 1]
        return [line.decode("utf-8", "replace") for line in text.split(b"\n")[:-1]], begin + len(text)

    def note(self, test):
        """Remembers the test after which a line was first there."""
        lines, self.seen = self.lines(self.seen)
        for line in lines:
            self.tests.setdefault(line, test)

    def remove(self):
        if self.own and os.getpid() == self.owner:
            self.own = False
            os.environ.pop(REFUSALS, None)
            try:
                os.unlink(self.path)
            except OSError:
                pass


class Run:
    """The hooks of a run under Cricket; registered in the process that prints the summary."""

    def __init__(self, words, refusals):
        self.words = words
        self.refusals = refusals

    def pytest_report_header(self):
        import cricket_gpu

        return f"cricket: {cricket_gpu.__version__}, {self.words}"

    def pytest_runtest_logfinish(self, nodeid):
        self.refusals.note(nodeid)

    def pytest_terminal_summary(self, terminalreporter, config):
        lines, _ = self.refusals.lines(self.refusals.begin)
        if not lines:
            terminalreporter.write_line(f"cricket: {self.words}: nothing was refused")
            return
        counts = collections.Counter(lines)
        several = bool(getattr(config.option, "numprocesses", None))
        terminalreporter.section(f"cricket: {len(counts)} refused or not executed", yellow=True)
        for line, count in list(counts.items())[:LINES_MAX]:
            # The text may be a peer's: it holds nothing that a terminal would obey.
            line_shown = "".join(c if c.isprintable() else "?" for c in line)
            shown = line_shown if len(line) <= LINE_MAX else line_shown[:LINE_MAX] + " ..."
            test = self.refusals.tests.get(line)
            where = f" [first in {test}]" if test and not several else ""
            times = f" ({count} processes)" if count > 1 else ""
            terminalreporter.write_line(shown + times + where)
        if len(counts) > LINES_MAX:
            terminalreporter.write_line(f"... and {len(counts) - LINES_MAX} more")

    def pytest_unconfigure(self):
        self.refusals.remove()


def begin(config):
    options = config.known_args_namespace
    request = wanted(options)
    if request is None or getattr(options, "help", False) or getattr(options, "version", False):
        return
    arguments, variables, words = request
    mark = "\t".join([*arguments, *variables.values()])
    if os.environ.get(MARK) != mark:
        if "PYTEST_XDIST_WORKER" in os.environ:
            raise pytest.UsageError("a worker of pytest-xdist on another host cannot run under Cricket: use workers of this host (-n)")
        run_again(config, arguments, variables, mark)
    # A worker's lines are in the controller's file.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        import atexit

        refusals = Refusals()
        atexit.register(refusals.remove)
        config.pluginmanager.register(Run(words, refusals), "cricket_gpu_run")


# A wrapper, and the first: pytest's own redirects the output to a file, which the next program would write to.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    begin(early_config)
    yield
