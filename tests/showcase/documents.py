# SPDX-License-Identifier: Apache-2.0
"""The commands of a document, and what it says that they print.

A document has commands in indented blocks: `$ ` and the command, with the lines of a here-document as they are, then what it prints.
A marker is an HTML comment before a block and holds for that block:

	<!-- skip: REASON -->	no test runs it
	<!-- gpu: REASON -->	runs only on a GPU machine (tests/gpu/tutorial)
	<!-- root: REASON -->	runs only as root
	<!-- wait: WHAT -->	it waits for something: what it prints does not matter
	<!-- fails: WHY -->	its last command fails, and does not if it exits 0
	<!-- text: WHAT -->	no commands

In what a command prints, `...` stands for anything in a line, or alone for any lines; numbers, sizes, times and IDs stand for others of
their kind.  An ID of the document becomes the real one in the commands that follow.
"""
import re

MARKER = re.compile(r"<!-- (skip|gpu|root|wait|fails|text): (.+?) -->", re.S)
ID = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b")
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")
KINDS = ((re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?"), "TIME"), (ID, "ID"),
         (re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?: ?(?:B|KiB|MiB|GiB|[kKMG]|ms|us|s))?(?![\w.])"), "N"), (re.compile(r" {2,}"), " "))


class Block:
    """Commands, each with the lines that it is said to print."""

    def __init__(self, line, marker, reason):
        self.line, self.marker, self.reason, self.commands = line, marker, reason, []


class Broken(Exception):
    """The document is not as described above."""


def take_commands(block, lines):
    """The lines of a block, without their indent."""
    end = None
    for line in lines:
        if end is not None:
            block.commands[-1][0] += "\n" + line
            end = None if line == end else end
        elif line.startswith("$ "):
            block.commands.append([line[2:], []])
            found = HERE_DOCUMENT.search(line)
            end = found.group(1) if found else None
        elif not block.commands:
            raise Broken(f"line {block.line}: a block that begins with no command needs a marker 'text'")
        else:
            block.commands[-1][1].append(line)
    if end is not None:
        raise Broken(f"line {block.line}: the here-document has no end")


def blocks(text):
    found, marker, reason, lines, start = [], None, "", [], 0

    def close():
        nonlocal marker, lines
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            block = Block(start, marker, reason)
            if marker != "text":
                take_commands(block, lines)
            found.append(block)
            marker, lines = None, []

    # Comments may have several lines; they keep their number of lines here.
    text = MARKER.sub(lambda m: m.group(0).replace("\n", " ") + "\n" * m.group(0).count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        mark = MARKER.match(line)
        if line.startswith("    ") and (lines or not line.startswith("     ")):
            start = start if lines else number
            lines.append(line[4:])
        elif not line and lines:
            lines.append("")
        else:
            close()
            if mark:
                if marker:
                    raise Broken(f"line {number}: the marker before has no block")
                marker, reason = mark.group(1), re.sub(r"\s+", " ", mark.group(2))
    close()
    return found


def normal(line):
    for pattern, name in KINDS:
        line = pattern.sub(name, line)
    return line.rstrip()


def pattern_of(line):
    return ".*".join(re.escape(normal(part) if part.strip() else part) for part in line.split("..."))


def agrees(said, printed):
    """Whether the lines printed are those that the document has."""
    if not said:
        return not printed
    if said[0] == "...":
        return any(agrees(said[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and re.fullmatch(pattern_of(said[0]), normal(printed[0])) is not None and agrees(said[1:], printed[1:])


class Run:
    """Runs a document in a shell; ports and IDs of the document stand for real ones."""

    def __init__(self, shell, ports):
        self.shell, self.real = shell, {}
        # Texts that are shown otherwise.
        self.shown = {shell.home: "/home/you"}
        for port, real in ports.items():
            self.real[str(port)] = str(real)

    def to_real(self, text):
        for theirs, real in self.real.items():
            text = re.sub(rf"(?<![0-9a-f]){theirs}(?![0-9a-f])", real, text)
        return text

    def command(self, command, said, exact, fails=False):
        """None, or what is wrong."""
        status, printed = self.shell.run(self.to_real(command))
        for theirs, real in self.real.items():
            printed = re.sub(rf"(?<![0-9a-f]){real}(?![0-9a-f])", theirs, printed)
        for real, theirs in self.shown.items():
            printed = printed.replace(real, theirs)
        # What bash says when a job has ended is not the command's.
        lines = [line.rstrip() for line in printed.rstrip("\n").split("\n") if not line.startswith("bash: line ")] if printed.strip() else []
        if exact and not agrees(said, lines):
            return f"$ {command}\nprinted:\n{printed}\nthe document has:\n" + "\n".join(said)
        for theirs in {theirs for line in said for theirs in ID.findall(line)} - set(self.real):
            ids = [real for real in ID.findall(printed) if real not in self.real.values() and real not in self.real]
            if ids:
                self.real[theirs] = ids[0]
        if bool(status) != fails:
            return f"$ {command}\nended with {status}:\n{printed}"
        return None
