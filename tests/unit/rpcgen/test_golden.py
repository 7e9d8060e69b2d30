# SPDX-License-Identifier: Apache-2.0
"""The wire against its goldens: the structs of every protocol in a normal form, and the bytes of sample messages.

Set: CKT_GOLDEN_X, paths of the .x files, in order; CKT_GOLDEN_PRINT, the program print_messages.
`test_golden.py --update` writes the goldens.
"""

import difflib
import os
import re
import subprocess
import sys
import unittest

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def remedy(name):
    return f"""
golden/{name} differs.  Clients and servers of the committed wire are in use:
  - you only appended procedures, or messages to the samples: write the golden anew by
    `meson compile -C BUILD update-wire-goldens` and commit it;
  - a number, a field, a type, a bound or the bytes of an existing message changed: take the change back.  A procedure that needs other
    arguments is a new procedure with the next free number; only a new CKT_PROTOCOL_VERSION may do otherwise."""


def normal_form(text):
    """RPC language with one declaration a line: no comments, one space between words."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    text = re.sub(r"\s+", " ", " ".join(lines))
    text = re.sub(r" ?([;{},:<>\[\]()=]) ?", r"\1", text)
    # A comma stands between enumerators only; without it a line stays the same when another one follows.
    text = re.sub(r"([;{])|,", lambda match: (match.group(1) or "") + "\n", text)
    text = re.sub(r"([^\n])}", r"\1\n}", text)
    depth, made = 0, []
    for line in text.splitlines():
        depth -= line.count("}")
        made.append("  " * depth + line.strip().replace("=", " = "))
        depth += line.count("{")
    return "\n".join(made).strip() + "\n"


def only_appended(old, new):
    """Whether the old lines all stand in the new ones, in their order."""
    rest = iter(new.splitlines())
    return all(line in rest for line in old.splitlines())


def current():
    """name of golden -> text of today."""
    made = {}
    for path in os.environ["CKT_GOLDEN_X"].split(os.pathsep):
        with open(path, encoding="utf-8") as f:
            made[os.path.basename(path)[:-2] + ".txt"] = normal_form(f.read())
    made["messages.txt"] = subprocess.run([os.environ["CKT_GOLDEN_PRINT"]], check=True, capture_output=True, text=True).stdout
    return made


class Goldens(unittest.TestCase):
    def test_wire(self):
        texts = current()
        self.assertEqual(sorted(texts), sorted(os.listdir(GOLDEN)), "a protocol without golden, or a golden without protocol")
        for name, text in texts.items():
            with self.subTest(name), open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
                golden = f.read()
                if text != golden:
                    what = "\n(Everything that was there is still there.)" if only_appended(golden, text) else ""
                    diff = "\n".join(difflib.unified_diff(golden.splitlines(), text.splitlines(), "committed", "today", lineterm="", n=1))
                    self.fail(f"\n{diff}{what}{remedy(name)}")


class NormalForm(unittest.TestCase):
    def test_form_ignores_layout_and_comments(self):
        a = normal_form("/* c */ struct s {\n\tint  a;\t/* x */\n\topaque b < 5 > ;\n};\n")
        self.assertEqual(a, normal_form("%#include <x>\nstruct s { int a; opaque b<5>; };"))
        self.assertEqual(a, "struct s{\n  int a;\n  opaque b<5>;\n};\n")

    def test_enumerators_stand_apart(self):
        self.assertTrue(only_appended(normal_form("enum e { A = 1, B = 2 };"), normal_form("enum e { A = 1, B = 2, C = 3 };")))
        self.assertFalse(only_appended(normal_form("enum e { A = 1, B = 2 };"), normal_form("enum e { A = 1, B = 3 };")))

    def test_form_sees_changes(self):
        self.assertNotEqual(normal_form("struct s { int a; };"), normal_form("struct s { hyper a; };"))
        self.assertNotEqual(normal_form("const A = 1;"), normal_form("const A = 2;"))

    def test_appended(self):
        self.assertTrue(only_appended("a\nb\n", "a\nx\nb\n"))
        self.assertFalse(only_appended("a\nb\n", "b\na\n"))


def update():
    os.makedirs(GOLDEN, exist_ok=True)
    for name, text in current().items():
        with open(os.path.join(GOLDEN, name), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
