#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ptx_seeds.py DIR: PTX texts for the corpus of the target `ptx`, from our own tests and kernels: the forms of instructions that
tests/truth can spell, some kernels of one opcode in a text; the worker's kernels; and the texts of the unit tests of softgpu/ptx/front."""

import ast
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "truth"))
from forms import candidates, check_text  # noqa: E402

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
TOGETHER = 12	# kernels of a text
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def form_texts():
    by_opcode = {}
    for form in candidates().values():
        by_opcode.setdefault(re.split(r"[. ]", form.name)[0], []).append(form)
    for opcode, forms in sorted(by_opcode.items()):
        for at in range(0, len(forms), TOGETHER):
            body = "\n".join("\n".join(check_text(form, n)) for n, form in enumerate(forms[at:at + TOGETHER]))
            yield f"form-{opcode}-{at}", HEAD + body + "\n"


def test_texts():
    """Strings of the unit tests that look like statements, each behind a head of its own."""
    for path in sorted(glob.glob(os.path.join(TOP, "tests", "unit", "ptx", "test_*.c"))):
        with open(path, encoding="utf-8") as f:
            # Neighbouring strings are one.
            source = re.sub(r'"\s*"', "", re.sub(r"UNIT_HEAD", "", f.read()))
        for n, literal in enumerate(LITERAL.findall(source)):
            try:
                text = ast.literal_eval(literal)
            except (SyntaxError, ValueError):
                continue
            if len(text) < 12 or len(text) > 6000 or not re.search(r"[;{]", text):
                continue
            if ".entry" not in text and ".func" not in text and ".global" not in text and ".const" not in text and ".version" not in text:
                text = ".entry k(.param .u64 p)\n{\n.reg .pred p, q; .reg .b32 r, a, b, c, x, y; .reg .b64 d, e; .reg .f32 f, g;\n" + text + "\nret;\n}\n"
            yield f"test-{os.path.basename(path)[5:-2]}-{n}", (text if ".version" in text else HEAD + text)


def pairs():
    """Two texts that are linked: the neighbouring ones of the linker's tests, and some with themselves."""
    texts = [text for name, text in test_texts() if name.startswith(("test-link", "test-parse_module"))]
    for n, (one, two) in enumerate(zip(texts, texts[1:])):
        yield f"pair-{n}", one + "\xff" + two
        yield f"twice-{n}", one + "\xff" + one


# Every operator of constants with signed, unsigned and floating-point sides, and what is none.
OPERATORS = ("||", "&&", "|", "^", "&", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%")
CONSTANTS = ["~5", "!0", "+3", "-3", "(.u64)-1", "(.s64)7U", "(.u32)7", "WARP_SZ", "1 ? 2 : 3", "0 ? 2 : 3 ? 4 : 5", "1.5 ? 2 : 3", "~1.5", "!0f3F800000",
             "1/0", "1%0", "-9223372036854775807 / -1", "6U / 4", "(.u64)1.0", "0x8000000000000000", "010", "0b101", "09", "0x", "0f3F80", "1e", ")"]
CONSTANTS += ["(" * 70 + "1" + ")" * 70, "-" * 70 + "1", "1?" * 70 + "1" + ":2" * 70]
# Operands that no instruction takes, and some that few take; r, s: .b32, d, e: .b64, f: .f32, g: .f64, p, q: .pred.
STATEMENTS = ["mov.f64 g, 0f3F800000;", "mov.f32 f, 0d3FF0000000000000;", "mov.u32 r, !s;", "mov.u32 r, -s;", "add r, s, 1;", "add.u32 r, s;", "add.u32 r;",
              "add.u32 r, s.h0, s.b1;", "add.u32 r, s, f;", "add.u32 f, r, s;", "add.u32 r, s, nobody;", "add.u32 r, s, {r, s};", "add.u32 _, r, s;",
              "and.pred p, q, !p;", "and.pred p, q, 1;", "and.pred p, q, r;", "selp.u32 r, 1, 2, !p;", "bra 5;", "bra r;", "brx.idx r, r;", "@p bra nowhere;",
              "mov.b128 h, -1;", "mov.u16 t, -1;", "cvt.s8.s32 t, r;", "ld.global.u32 r, [d+r];", "ld.global.u32 r, [[d]];", "ld.global.u32 r, [d][1];",
              "mov.u32 r, f[1];", "mov.u32 r, a[r];", "mov.u32 r, a[;", "{ ret }", "mov.b64 d, {r, {s, r}};", "mov.u32 r, " + "{" * 12 + "s" + "}" * 12 + ";",
              "vadd.u32.u32.u32 r, s.b0, s.h1;", "add.rn.sat.frob.u32 r, s, 1;", "add.u32.u32 r, s, 1;", "frob.u32 r;", "frob", "add.u32.s32.f32 r, s, 1;",
              "mov.u32 r, " + ", ".join("s" * 40) + ";", "add" + ".u32" * 40 + " r, s, 1;", "add" + (".u" + "x" * 40) * 8 + " r, s, 1;", "mov.u32 r, (1 + 2) * 3;",
              "mov.u32 r, (s + 2);",
              ".reg .b32 many<100000000>;", ".reg .b32 x<5>, y, z<2>;", "call (r), k, (s);", "setp.lt.u32 p|q, r, s;", "setp.lt.and.u32 p|q, r, s, !p;",
              "mov.pred p, %is_explicit_cluster;", "mov.u32 r, %laneid;", "mov.u64 d, %clock64;"]
DECLARATIONS = [".global .u32 x[2] = {1, 2, 3};", ".global .u32 x[] = {1, 2, 3};", ".global .u32 x[2][2] = {{1, 2}, {3, 4, 5}};", ".global .u8 x[] = {" + "1," * 200 + "1};",
                ".global .u32 x[99999999][99999999];", ".shared .b8 x[99999999];", ".shared .b8 x[4294967296];", ".global .attribute(.managed) .u32 x;",
                ".visible .global .attribute(.unified(1, 2)) .u32 x;", ".file 1 \"x\"", ".loc 1 2 3", ".section .debug_x { .b8 1, 2 }", ".pragma \"nounroll\";",
                ".extern .shared .align 16 .b8 x[];", ".const .u32 x = 5;", ".global .u64 x[2] = {k, generic(k)};", ".global .u64 x = y + 8;",
                ".global .u32 y; .global .u64 x = y + 8;", ".global .u32 y; .global .u64 x[] = {generic(y) + 4, 0xff(y)};", ".alias k, k;",
                ".func (.param .u32 a) f(.param .u32 b) .attribute(.unified(1, 2)) .noreturn { ret; }", ".entry e() .maxntid 1, 2, 3 .reqntid 4 .maxnreg 16 .minnctapersm 1 { }",
                ".func f .unknown { ret; }", ".weak .func f; .common .global .u32 z;", "\"text\\x41\\n\"", ".global .u32 x = ;", ".local .b8 x[99999999999];"]


def written():
    registers = ".reg .pred p, q; .reg .b16 t; .reg .b32 r, s; .reg .b64 d, e; .reg .f32 f; .reg .f64 g; .reg .b128 h;\n.local .u32 a[4];\n"
    sides = [("3", "2"), ("0", "0"), ("-3", "2U"), ("7U", "7U"), ("1.5", "0.5"), ("1", "0.5"), ("0f3F800000", "0f40000000")]
    constants = CONSTANTS + [f"{one} {operator} {two}" for operator in OPERATORS for one, two in sides]
    for n, constant in enumerate(constants):
        yield f"constant-{n}", HEAD + f".global .u64 x = {constant};\n"
        yield f"immediate-{n}", HEAD + ".entry k()\n{\n" + registers + f"mov.b64 d, {constant};\nret;\n}}\n"
    for n, statement in enumerate(STATEMENTS):
        yield f"statement-{n}", HEAD + ".entry k()\n{\n" + registers + statement + "\nret;\n}\n"
    for n, declaration in enumerate(DECLARATIONS):
        yield f"declaration-{n}", HEAD + declaration + "\n.entry k() { ret; }\n"


def kernels():
    for path in sorted(glob.glob(os.path.join(TOP, "checkpoint", "kernels", "*.ptx"))):
        with open(path, encoding="utf-8") as f:
            yield "kernel-" + os.path.basename(path), f.read()


def main():
    for texts in (form_texts(), test_texts(), pairs(), kernels(), written()):
        for name, text in texts:
            with open(os.path.join(sys.argv[1], name), "wb") as f:
                f.write(b"\0" + text.encode("latin-1", "replace"))


main()
