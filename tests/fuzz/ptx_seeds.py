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


def kernels():
    for path in sorted(glob.glob(os.path.join(TOP, "checkpoint", "kernels", "*.ptx"))):
        with open(path, encoding="utf-8") as f:
            yield "kernel-" + os.path.basename(path), f.read()


def main():
    for texts in (form_texts(), test_texts(), pairs(), kernels()):
        for name, text in texts:
            with open(os.path.join(sys.argv[1], name), "wb") as f:
                f.write(b"\0" + text.encode("latin-1", "replace"))


main()
