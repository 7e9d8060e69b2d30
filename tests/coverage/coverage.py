#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./run coverage does around its tests.

	coverage.py prepare --build DIR --data DIR   makes the files that every user's processes add their counters to
	coverage.py collect --build DIR --data DIR   reads them with gcov into DIR/coverage.json and prints the table of rooms
	coverage.py report --build DIR [--files ROOM] [--lines FILE]
	                                             prints the table again; files of a room; the lines of a file that no test reached

Counters of all tests are added up.  A line counts as covered if it ran in any program or library that it is compiled into.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))
import includes  # noqa: E402  the table of rooms is the one that ./run lint checks

GOAL, DECODER_GOAL = 85.0, 95.0


def notes(build):
    """The .gcno file of every object."""
    for directory, _, files in os.walk(build):
        for file in files:
            if file.endswith(".gcno"):
                yield os.path.join(directory, file)


def prepare(build, data):
    """Empty counter files that everybody may write: libgcov fills them in.  Workers are another user's, and a file that a test of root's
    made would be closed to them.  They lie apart from the build directory because that user may not be able to reach it."""
    for note in notes(build):
        path = data + note.removesuffix(".gcno") + ".gcda"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb"):
            pass
        os.chmod(path, 0o666)
    for directory, _, _ in os.walk(data):
        os.chmod(directory, 0o777)


def gcov(note, data):
    """gcov's JSON for one object.  Without counters, none of its lines ran."""
    counters = data + note.removesuffix(".gcno") + ".gcda"
    beside = note.removesuffix(".gcno") + ".gcda"
    if os.path.exists(counters) and os.path.getsize(counters):
        shutil.copyfile(counters, beside)
    elif os.path.exists(beside):
        os.unlink(beside)
    done = subprocess.run(["gcov", "--json-format", "--stdout", note], cwd=os.path.dirname(note), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"gcov cannot read {note}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def merge(documents, top, rooms):
    """path -> line -> how often it ran, of the files of the product."""
    files = {}
    for document in documents:
        for file in document["files"]:
            path = os.path.relpath(os.path.realpath(os.path.join(document["current_working_directory"], file["file"])), top)
            if includes.room_of(path, rooms) is None:
                continue
            lines = files.setdefault(path, {})
            for line in file["lines"]:
                lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
    return files


def percent(covered, total):
    return 100.0 * covered / total if total else 100.0


def counts(lines):
    return sum(1 for count in lines.values() if count), len(lines)


def row(name, pairs, goal):
    covered, total = (sum(values) for values in zip(*pairs)) if pairs else (0, 0)
    share = percent(covered, total)
    return f"| `{name}` | {total} | {share:.1f}% | {'' if share >= goal else f'below {goal:.0f}%'} |", share >= goal


def table(files, rooms, decoders):
    """The lines of the report, and whether every goal is reached."""
    out, reached = ["| room | lines | covered | |", "|---|--:|--:|---|"], True
    by_room = {}
    for path, lines in files.items():
        by_room.setdefault(includes.room_of(path, rooms), []).append(counts(lines))
    for room in rooms:
        if room in by_room:
            line, good = row(room, by_room[room], GOAL)
            out, reached = out + [line], reached and good
    line, good = row("product", [pair for pairs in by_room.values() for pair in pairs], GOAL)
    out, reached = out + [line.replace("`product`", "all")], reached and good
    out += ["", "| decoder of peer bytes | lines | covered | |", "|---|--:|--:|---|"]
    for path in decoders:
        line, good = row(path, [counts(files.get(path, {}))], DECODER_GOAL)
        out, reached = out + [line], reached and good
    return out, reached


def read_decoders():
    with open(os.path.join(HERE, "decoders.txt"), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def collect(build, data, rooms):
    documents = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for some in pool.map(lambda note: gcov(note, data), sorted(notes(build))):
            documents += some
    files = merge(documents, TOP, rooms)
    if not files:
        raise RuntimeError(f"no counters below {data}")
    with open(os.path.join(build, "coverage.json"), "w", encoding="utf-8") as f:
        json.dump(files, f)


def load(build):
    with open(os.path.join(build, "coverage.json"), encoding="utf-8") as f:
        return {path: {int(number): count for number, count in lines.items()} for path, lines in json.load(f).items()}


def show_lines(files, path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = f.read().splitlines()
    for number, count in sorted(files[path].items()):
        if not count:
            print(f"{path}:{number}: {text[number - 1].strip()}")


def show_files(files, rooms, room):
    """Worst first: by lines that no test reached."""
    some = [(path, *counts(lines)) for path, lines in files.items() if includes.room_of(path, rooms) == room]
    for path, covered, total in sorted(some, key=lambda entry: entry[1] - entry[2]):
        print(f"{total - covered:5} of {total:5} lines not reached, {percent(covered, total):5.1f}% covered: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "collect", "report"))
    parser.add_argument("--build", required=True)
    parser.add_argument("--data")
    parser.add_argument("--files", metavar="ROOM")
    parser.add_argument("--lines", metavar="FILE")
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    rooms, _ = includes.read_rooms(os.path.join(TOP, "tests", "lint", "rooms.txt"))
    if args.what != "report" and not args.data:
        parser.error("--data: where the counters are")
    if args.what == "prepare":
        return prepare(build, os.path.realpath(args.data))
    if args.what == "collect":
        collect(build, os.path.realpath(args.data), rooms)
    files = load(build)
    if args.lines:
        show_lines(files, args.lines)
    elif args.files:
        show_files(files, rooms, args.files)
    else:
        print("\n".join(table(files, rooms, read_decoders())[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
