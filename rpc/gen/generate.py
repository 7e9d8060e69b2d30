#!/usr/bin/python3
"""generate.py --table FILE --include DIR [--strict] OUTPUT ...: writes the outputs, each a path whose last part stands in OUTPUTS."""

import argparse
import os
import sys

sys.dont_write_bytecode = True

import cuda_headers
import emit_codec
import model as model_module
import table

OUTPUTS = {
    "cuda_codec.h": emit_codec.header,
    "cuda_codec.c": emit_codec.source,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--include", required=True, help="directory of cuda.h")
    parser.add_argument("--strict", action="store_true", help="fail when cuda.h holds functions that the table does not know")
    parser.add_argument("outputs", nargs="+", metavar="OUTPUT", help="path of an output; its name says what it is: " + " ".join(OUTPUTS))
    arguments = parser.parse_args()
    for path in arguments.outputs:
        if os.path.basename(path) not in OUTPUTS:
            parser.error(f"nothing makes {os.path.basename(path)}")
    try:
        model = model_module.load(arguments.table, arguments.include)
    except (table.TableError, cuda_headers.HeaderError) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.strict and model.unknown():
        print(f"{arguments.table}: cuda.h has functions that the table does not know; add a line for each:", file=sys.stderr)
        for entry in model.unknown():
            print(f"  {entry.name}", file=sys.stderr)
        return 1
    for path in arguments.outputs:
        with open(path, "w", encoding="utf-8") as f:
            f.write(OUTPUTS[os.path.basename(path)](model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
