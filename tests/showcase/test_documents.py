#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of the tutorial and of docs/operations.md (documents.py says how they are written).

	test_documents.py --build DIR [DOCUMENT ...]

Prints what was run and, with its reason, what was not.  The number of skipped blocks of each document stands below: another one is an error.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import documents  # noqa: E402
import shell  # noqa: E402

# Blocks that no test of CI runs, those for a GPU and for root included.
SKIPPED = {"docs/tutorial.md": 3, "docs/operations.md": 1}
# The ports that the documents have.
PORTS = (7350, 7351)


def run_block(run, block, name):
    for number, (command, said) in enumerate(block.commands, 1):
        wrong = run.command(command, said, block.marker != "wait", block.marker == "fails" and number == len(block.commands))
        if wrong:
            raise shell.runner.Failure(f"{name}: the block at line {block.line}:\n{wrong}")
    return len(block.commands)


def run_document(name, arg):
    with open(os.path.join(shell.TOP, name), encoding="utf-8") as f:
        blocks = documents.blocks(f.read())
    count, skipped = 0, []
    bash = shell.Shell(arg.build)
    run = documents.Run(bash, {port: shell.runner.free_port() for port in PORTS})
    try:
        for block in blocks:
            if block.marker == "text":
                continue
            if block.marker in ("skip", "gpu") or (block.marker == "root" and os.geteuid() != 0):
                skipped.append(block)
            else:
                count += run_block(run, block, name)
    finally:
        bash.close()
    print(f"{name}: {count} commands")
    for block in skipped:
        print(f"  skipped, line {block.line}: {len(block.commands)} commands: {block.marker}: {block.reason}")
    unknown = [block for block in skipped if block.marker != "root"]
    if len(unknown) != SKIPPED[name]:
        raise shell.runner.Failure(f"{name}: {len(unknown)} blocks are skipped, not {SKIPPED[name]}: say so in {os.path.basename(__file__)}")
    if count < 10:
        raise shell.runner.Failure(f"{name}: only {count} commands were found")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("documents", nargs="*", default=list(SKIPPED))
    arg = parser.parse_args()
    if not os.environ.get("CKT_TEST_NVCC_DIR"):
        print("no nvcc: the programs of the documents cannot be compiled")
        return 77
    for name in arg.documents:
        try:
            run_document(name, arg)
        except (documents.Broken, shell.runner.Failure) as failure:
            print(f"{name}: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
