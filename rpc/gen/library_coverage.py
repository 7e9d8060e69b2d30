#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""library_coverage.py JSON --title TITLE --api FILE --status STATUS (--out DOC | --check DOC): how each function of a forwarded library is answered.

JSON is NAME_coverage.json, which the generator makes of the library's table and headers (emit_forwarded.coverage).
"""

import argparse
import json
import sys
import textwrap

HEAD = """\
# Coverage of {title}

Made by `rpc/gen/library_coverage.py` (`meson compile -C BUILD library-coverage-docs`): do not edit.

{calls}

{counts}
"""

CALLS = """\
Calls go to the genuine library in the worker (`{api}` says how). The client sends a *batched* call and does not wait for it. A call that *waits* has an answer,
which the client keeps if it cannot change. The client answers all other calls. A function that is not supported returns `{status}`, and the log names it once."""

CLASSES = (("batched", "Batched"), ("waits", "Wait for an answer"), ("local", "Answered in the client"), ("same", "Another function's name"),
           ("legacy", "Over another function"), ("unsupported", "Not supported"))


def wrapped(text):
    """A paragraph of the document: no line is longer than 100 columns, unless a name is."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def document(data, title, api, status):
    by_class = {}
    for function in data["functions"]:
        by_class.setdefault(function["class"], []).append(function)
    unknown = set(by_class) - {name for name, _ in CLASSES}
    if unknown:
        sys.exit(f"library_coverage.py: no heading for {' '.join(sorted(unknown))}")
    total, refused = len(data["functions"]), len(by_class.get("unsupported", []))
    counts = f"{total} exported functions: {total - refused} implemented, {refused} not supported."
    text = HEAD.format(title=title, calls=wrapped(CALLS.format(api=api, status=status)), counts=counts)
    for name, heading in CLASSES:
        rows = by_class.get(name, [])
        if not rows:
            continue
        text += f"\n## {heading}: {len(rows)}\n"
        reasons = {}
        for row in rows:
            reasons.setdefault(row.get("reason") or "", []).append(row["name"])
        for reason in sorted(reasons):
            why = f"{reason[:1].upper()}{reason[1:]}:"
            text += f"\n{wrapped(why)}\n" if reason else ""
            text += "\n" + wrapped(", ".join(f"`{n}`" for n in sorted(reasons[reason]))) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("json")
    parser.add_argument("--title", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--status", required=True, help="what is not supported returns")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out")
    action.add_argument("--check")
    arguments = parser.parse_args()
    with open(arguments.json, encoding="utf-8") as f:
        text = document(json.load(f), arguments.title, arguments.api, arguments.status)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    with open(arguments.check, encoding="utf-8") as f:
        if f.read() == text:
            return 0
    print(f"{arguments.check} is not what the table says: meson compile library-coverage-docs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
