#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rpc/gen over rpc/api/nvml.api: mistakes in the table are named with their line; a header that is there must agree with it; its functions are
what libnvidia-ml.so.1 exports; docs/nvml.md is its.

usage: test_nvml.py LIBRARY SOURCE INCLUDE
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, SOURCE, INCLUDE = sys.argv[1:4]
GENERATOR, TABLE = os.path.join(SOURCE, "rpc", "gen", "generate.py"), os.path.join(SOURCE, "rpc", "api", "nvml.api")

NVML_H = """
typedef enum { NVML_SUCCESS = 0 } nvmlReturn_t;
typedef enum { NVML_CLOCK_SM = 1 } nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct { unsigned int version; unsigned int value; } nvmlVersioned_t;
typedef struct { unsigned int value; } nvmlPlain_t;
typedef struct { char bytes[40]; } nvmlField_t;
#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS
#define nvmlOld nvmlOld_v2
#endif
nvmlReturn_t nvmlOld(nvmlDevice_t device, unsigned int *value);
nvmlReturn_t nvmlOld_v2(nvmlDevice_t device, nvmlDevice_t other, nvmlClockType_t type, unsigned long long *value);
nvmlReturn_t nvmlText(char *version, unsigned int length);
nvmlReturn_t nvmlVersioned(nvmlDevice_t device, nvmlVersioned_t *v);
nvmlReturn_t nvmlPlain(nvmlDevice_t device, nvmlPlain_t *plain);
nvmlReturn_t nvmlFields(nvmlDevice_t device, int count, nvmlField_t *values);
const char *nvmlErrorString(nvmlReturn_t result);
"""


def generate(output, text=None, header=None, strict=False):
    """(status, what was said, what was made); text: the table's lines behind the library's; header: an nvml.h of ours."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = TABLE, os.path.join(directory, output)
        if text is not None:
            path = os.path.join(directory, "table")
            with open(path, "w", encoding="utf-8") as f:
                f.write("library nvml\n" + text)
        if header is not None:
            with open(os.path.join(directory, "nvml.h"), "w", encoding="utf-8") as f:
                f.write(header)
        done = subprocess.run([sys.executable, GENERATOR, "--table", path, "--include", directory, *(["--strict"] if strict else []), out],
                              capture_output=True, text=True, check=False)
        made = ""
        if os.path.exists(out):
            with open(out, encoding="utf-8") as f:
                made = f.read()
        return done.returncode, done.stderr, made


def lines(text):
    """`a; b c; d` as a procedure's lines."""
    return text.replace("; ", "\n\t") + "\n"


class Table(unittest.TestCase):
    def refused(self, text, line, *words, header=None):
        """line: counted from the one behind `library nvml`."""
        status, said, made = generate("nvml_table.c", text, header)
        self.assertEqual((status, made), (1, ""), text)
        self.assertRegex(said, rf"table:{line + 1}: ")
        for word in words:
            self.assertIn(word, said)

    def test_grammar(self):
        self.refused("1 cuX waits\n", 1, "'cuX' is not the full name of a function of nvml")
        self.refused("1 nvmlX batched\n", 1, "class of nvmlX: waits expected")
        self.refused("1 nvmlX waits numbered\n", 1, "unknown flag 'numbered'", "none")
        self.refused("0 nvmlX waits\n", 1, "not in 1..65535")
        self.refused(lines("1 nvmlA waits; res text t") + lines("1 nvmlB waits; res text t"), 3, "number 1 of nvmlB")
        self.refused(lines("1 nvmlA waits; res text t") + lines("2 nvmlA waits; res text t"), 3, "nvmlA stands already")
        self.refused("1 nvmlX waits\n\targ u64 x\n", 2, "unknown type 'u64' of x; there are: device u32")
        self.refused("1 nvmlX waits\n\tres opaque x 5\n", 2, "unknown type 'opaque'", "versioned")
        self.refused("1 nvmlX waits\n\tres block x\n", 2, "block x needs its bound")
        self.refused("1 nvmlX waits\n\targ device x\n\tres u32 x\n", 3, "has a field x already")
        self.refused("1 nvmlX waits\n\tout x\n", 2, "no types but those of the table")
        self.refused("same nvmlA AS nvmlB\n", 1, "unknown line 'same'; there are: NUMBER local unsupported")
        self.refused("unsupported nvml* no\n", 1, "'nvml*' is not the full name")
        self.refused("local cuInit\n", 1, "'cuInit' is not the full name")
        self.refused("local nvmlA\nunsupported nvmlA no\n", 2, "nvmlA stands already on line 2")
        self.refused("local nvmlA\n1 nvmlB waits\n", 2, "procedures stand before the first local or unsupported line")

    def test_forms(self):
        for text, says in (("1 nvmlX waits; arg device d", "res lines expected"), ("1 nvmlX waits; arg device d; res u32 a; res text t", "res lines expected"),
                           ("1 nvmlX waits; arg device d; res block b 300", "256 bytes in a block"),
                           ("1 nvmlX waits; arg device d; arg device e; arg device f; res u32 a", "at most two devices"),
                           ("1 nvmlX waits; arg device d; arg u32 a; arg u32 b; arg u32 c; arg u32 e; res u32 f", "3 numbers"),
                           ("1 nvmlX waits; arg device d; res u32 a; res u32 b; res u32 c; res u32 e; res u32 f", "4 results"),
                           ("1 nvmlX waits; res u32 a", "only texts"), ("1 nvmlX waits; arg u32 a; res text t", "nothing is given"),
                           ("1 nvmlX waits; arg u32 a; arg device d; res u32 b", "the order is"),
                           ("1 nvmlX waits; arg device d; res u32 b; arg u32 a", "the order is"),
                           ("1 nvmlX waits; arg device d; arg u32 a; res fields f", "fields come from one device")):
            self.refused(lines(text), 1, "nvmlX: ", says)

    def test_made(self):
        text = lines("7 nvmlA waits; arg device d; arg u32 kind; res u32 x; res u64 y") + lines("9 nvmlB hand waits; arg device d; res text t") \
            + lines("12 nvmlE waits; arg device d; arg device other; res versioned v") + lines("13 nvmlF waits; arg device d; res fields f") \
            + lines("14 nvmlG waits; res text t") + "local nvmlC\nunsupported nvmlD nvmlH not passed on\n"
        made = generate("nvml_table.c", text)[2]
        self.assertIn('[7] = {"nvmlA", CKT_NVML_DATA, 0, 0, 1, 2, {4, 8}},', made)
        self.assertIn('[9] = {"nvmlB", CKT_NVML_TEXT, 0, 0, 0, 0, {0}},', made)
        self.assertIn('[12] = {"nvmlE", CKT_NVML_VERSIONED, 0, 1, 0, 0, {0}},', made)
        self.assertIn('[13] = {"nvmlF", CKT_NVML_FIELD, 0, 0, 0, 0, {0}},', made)
        self.assertIn('[14] = {"nvmlG", CKT_NVML_TEXT, 1, 0, 0, 0, {0}},', made)
        self.assertNotIn("nvmlC", made)
        made = generate("nvml_client.c", text)[2]
        self.assertEqual(re.findall(r"^int (nvml\w\(.*\))$", made, re.M), [
            "nvmlA(void *d, unsigned kind, void *x, void *y)", "nvmlE(void *d, void *other, void *v)", "nvmlF(void *d, int count, void *f)",
            "nvmlG(char *t, unsigned t_size)", "nvmlD(void)", "nvmlH(void)"])
        self.assertIn("return ckt_nvml_data(7, d, NULL, (const unsigned[]){kind, 0, 0}, (void *const[]){x, y});", made)
        self.assertIn("return ckt_nvml_versioned(12, d, other, (const unsigned[]){0, 0, 0}, v);", made)
        self.assertIn("return ckt_nvml_fields(13, d, count, f);", made)
        self.assertIn("return ckt_nvml_text(14, NULL, NULL, (const unsigned[]){0, 0, 0}, t, t_size);", made)
        self.assertIn('return ckt_nvml_refuse("nvmlD", &once);', made)
        self.assertEqual(re.findall(r"^\t(nvml\w);", generate("nvml.map", text)[2], re.M), [f"nvml{c}" for c in "ABCDEFGH"])

    def test_header_agrees(self):
        """What the table declares is what an nvml.h says, by the exported name, where there is one."""
        old = "1 nvmlOld waits; arg device d; res u32 x"
        new = "2 nvmlOld_v2 waits; arg device d; arg device e; arg u32 type; res u64 x"
        good = "".join(map(lines, (old, new, "3 nvmlText waits; res text t", "4 nvmlVersioned waits; arg device d; res versioned v",
                                   "5 nvmlPlain waits; arg device d; res block b 4", "6 nvmlFields waits; arg device d; res fields f",
                                   "7 nvmlNewer waits; arg device d; res u32 x"))) + "local nvmlErrorString\n"
        self.assertEqual(generate("nvml_table.c", good, NVML_H)[:2], (0, ""))
        self.refused(lines(old + "; res u32 y"), 1, "nvmlOld takes 2 parameters in nvml.h, and 3 here", header=NVML_H)
        self.refused(lines(old.replace("u32", "u64")), 3, "x of nvmlOld is not what nvml.h has: unsigned int *value", header=NVML_H)
        self.refused(lines(new.replace("arg device e", "arg u32 e")), 3, "e of nvmlOld_v2 is not", header=NVML_H)
        self.refused(lines("5 nvmlPlain waits; arg device d; res versioned v"), 3, "v of nvmlPlain is not", header=NVML_H)
        self.refused(lines("5 nvmlPlain waits; arg device d; res block b 8"), 3, "b of nvmlPlain is not", header=NVML_H)
        self.refused(lines("5 nvmlErrorString waits; res text t"), 1, "gives a const char *", header=NVML_H)

    def test_unknown(self):
        """What only the header knows is named, and an error where that is asked for."""
        text = lines("1 nvmlOld waits; arg device d; res u32 x") + "local nvmlErrorString nvmlOld_v2 nvmlText nvmlPlain nvmlVersioned\n"
        self.assertEqual(generate("nvml.map", text, NVML_H)[0], 0)
        status, said, made = generate("nvml.map", text, NVML_H, strict=True)
        self.assertEqual((status, made), (1, ""))
        self.assertIn("nvml.h has functions that the table does not know; add a line for each:\n  nvmlFields\n", said)

    def test_real_header(self):
        if not os.path.exists(os.path.join(INCLUDE, "nvml.h")):
            self.skipTest("no nvml.h in this toolkit")
        with open(os.path.join(INCLUDE, "nvml.h"), encoding="utf-8") as f:
            self.assertEqual(generate("nvml_table.c", header=f.read())[:2], (0, ""))

    def test_changes_nothing(self):
        """What is passed on asks."""
        names = re.findall(r'= \{"(\w+)"', generate("nvml_table.c")[2])
        self.assertGreater(len(names), 90)
        for name in names:
            self.assertRegex(name, r"^nvml(Device|System)(Get|OnSame)")

    def test_exports(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout.split("\n")
        exported = {line.split()[2] for line in symbols if line}
        listed = set(re.findall(r"\t(nvml\w+);", generate("nvml.map")[2]))
        self.assertEqual(exported, listed)
        with open(os.path.join(SOURCE, "tests", "truth", "exports", "libnvidia-ml.so.1.txt"), encoding="utf-8") as f:
            self.assertEqual(set(f.read().split()) - exported, set())

    def test_document(self):
        with open(os.path.join(SOURCE, "docs", "nvml.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), generate("nvml.md")[2], "ninja nvml-doc writes it")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
