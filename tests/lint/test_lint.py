#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our own checks of tests/lint notice what they are for."""
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import clocks  # noqa: E402
import functions  # noqa: E402
import includes  # noqa: E402
import lint  # noqa: E402
import names  # noqa: E402
import passed  # noqa: E402
import spdx  # noqa: E402
import subjects  # noqa: E402

ROOMS = {"base": [], "rpc": ["base"], "client/conn": ["rpc", "base"], "server": ["rpc/wire.h"]}


class Includes(unittest.TestCase):
    def complaints(self, files, exceptions=None):
        return includes.check("", files, ROOMS, exceptions or {})

    def test_allowed(self):
        self.assertEqual(self.complaints({"client/conn/a.c": ["rpc/wire.h", "base/log.h", "client/conn/a.h", "x.h"], "server/a.c": ["rpc/wire.h"]}), [])

    def test_forbidden(self):
        self.assertEqual(len(self.complaints({"base/a.c": ["rpc/wire.h"], "server/a.c": ["rpc/net.h", "client/conn/a.h"]})), 3)
        self.assertEqual(len(self.complaints({"client/other/a.c": []})), 1)

    def test_exceptions(self):
        files = {"base/a.c": ["rpc/wire.h"]}
        self.assertEqual(self.complaints(files, {("base", "rpc"): 1}), [])
        self.assertEqual(len(self.complaints(files, {("base", "rpc"): 2})), 1)
        self.assertEqual(len(self.complaints({}, {("base", "rpc"): 1})), 1)

    def test_circles(self):
        files = {"base/a.h": ["base/b.h"], "base/b.h": ["base/c.h"], "base/c.h": []}
        self.assertEqual(self.complaints(files), [])
        files["base/c.h"] = ["base/a.h"]
        self.assertEqual(self.complaints(files), ["headers include each other: base/a.h base/b.h base/c.h"])

    def test_beside(self):
        files = {"base/a.c": ["base/a.h"], "base/a.h": [], "base/b.c": ["base/a.h"]}
        self.assertEqual(self.complaints(files), [])
        files["base/b.h"] = []
        self.assertEqual(self.complaints(files), ["base/b.c: does not include base/b.h, the header beside it"])

    def test_table(self):
        rooms, exceptions = includes.read_rooms(os.path.join(lint.HERE, "rooms.txt"))
        self.assertEqual(rooms["base"], [])
        for room, allowed in rooms.items():
            for word in allowed:
                self.assertTrue(includes.room_of(word + "/x", rooms), f"{room}: {word}")
        self.assertTrue(all(count > 0 for count in exceptions.values()))


class Passed(unittest.TestCase):
    """Only what is the same byte by byte, and had nothing, is left out."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.list = os.path.join(self.place.name, "lint-passed")

    def tree(self, name, **files):
        """A clone with these files."""
        top = os.path.join(self.place.name, name)
        os.makedirs(os.path.join(top, "base"), exist_ok=True)
        for file, text in {"a_c": '#include "base/a.h"\n', "a_h": "int a;\n", **files}.items():
            with open(os.path.join(top, "base", file.replace("_", ".")), "w", encoding="ascii") as f:
                f.write(text)
        return top

    def key(self, top, words=("tool 1",)):
        contents = passed.Contents(top)
        return contents.key(list(words), contents.included("base/a.c"))

    def test_key(self):
        first = self.key(self.tree("one"))
        self.assertEqual(self.key(self.tree("deeper/other")), first)
        for changed in ({"a_c": '#include "base/a.h"\n\n'}, {"a_h": "int b;\n"}):
            self.assertNotEqual(self.key(self.tree("other", **changed)), first)
        self.assertNotEqual(self.key(self.tree("one"), ["tool 2"]), first)
        # What includes what is included, and what the preprocessor would leave out.
        deep = {"a_h": '#if 0\n#include "b.h"\n#endif\n', "b_h": "int b;\n"}
        before = self.key(self.tree("three", **deep))
        self.assertNotEqual(self.key(self.tree("three", **{**deep, "b_h": "int c;\n"})), before)

    def test_list(self):
        known = passed.Passed(self.list)
        self.assertEqual(known.without(["a", "b", "c"], {"a": "1", "b": "2", "c": None}.get), (["a", "b", "c"], 0))
        known.add(["1", None])
        known.save()
        known = passed.Passed(self.list)
        # What is not known how it was compiled, and what did not pass, is looked at again.
        self.assertEqual(known.without(["a", "b", "c"], {"a": "1", "b": "2", "c": None}.get), (["b", "c"], 1))
        self.assertEqual(known.without(["a"], {"a": "3"}.get), (["a"], 0))

    def test_only_what_is_good(self):
        """A part of the files in which a tool found something is not known."""
        tree = types.SimpleNamespace(jobs=2, passed=passed.Passed(self.list))
        left, is_good = lint.not_yet(tree, "x", ["good", "bad"], str)
        script = 'case $1 in bad) echo wrong; exit 1;; esac'
        self.assertEqual(lint.by_parts(tree, left, 1, ["sh", "-c", script, "sh"], is_good), ["wrong"])
        self.assertEqual(lint.not_yet(tree, "x", ["good", "bad"], str)[0], ["good", "bad"])
        tree.passed.save()
        tree.passed = passed.Passed(self.list)
        self.assertEqual(lint.not_yet(tree, "x", ["good", "bad"], str)[0], ["bad"])

    def test_disabled(self):
        with unittest.mock.patch.dict(os.environ, {"CCACHE_DIR": "/x", "CCACHE_DISABLE": "1"}):
            self.assertIsNone(passed.default_path())
        with unittest.mock.patch.dict(os.environ, {"CCACHE_DIR": "/x", "CCACHE_DISABLE": ""}):
            self.assertEqual(passed.default_path(), "/x/lint-passed")
        nothing = passed.Passed(None)
        nothing.add(["1"])
        nothing.save()


class Names(unittest.TestCase):
    def complaints(self, files, listed=()):
        return names.check(files, set(listed))[0]

    def test_once(self):
        self.assertEqual(self.complaints({"base/a.c": "static int f(void)\n{\n}\nint ckt_g(void)\n{\n}\n", "rpc/a.c": "static int f(void)\n{\n}\nint ckt_g(void);\n"}), [])

    def test_twice(self):
        self.assertEqual(len(self.complaints({"base/a.c": "int ckt_g(int a,\n\tint b)\n{\n}\n", "rpc/a.c": "int ckt_g(void)\n{\n}\n"})), 1)
        self.assertEqual(len(self.complaints({"base/a.h": "struct s {\n};\n", "rpc/a.h": "struct s { int a; };\n"})), 1)
        self.assertEqual(self.complaints({"base/a.c": "struct s {\n};\n", "rpc/a.c": "struct s { int a; };\n"}), [])
        self.assertEqual(len(self.complaints({"base/a.c": "struct ckt_s {\n};\n", "rpc/a.c": "struct ckt_s { int a; };\n"})), 1)

    def test_prefix(self):
        self.assertEqual(len(self.complaints({"base/a.c": "int g(void)\n{\n}\n"})), 1)
        self.assertEqual(self.complaints({"base/glibc.c": "long __isoc23_strtol(void)\n{\n}\n", "ctl/a.c": "int main(void)\n{\n}\n"}), [])

    def test_api(self):
        self.assertEqual(self.complaints({"client/a.c": "CUresult cuInit(unsigned flags)\n{\n}\n", "softgpu/a.c": "CUresult cuInit(unsigned flags)\n{\n}\n"}), [])

    def test_hooks(self):
        files = {"cudacommon/a.h": "int ckt_h(void);\n", "client/a.c": "int ckt_h(void)\n{\n}\n", "softgpu/a.c": "int ckt_h(void)\n{\n}\n"}
        self.assertEqual(self.complaints(files), [])
        self.assertEqual(len(self.complaints({**files, "server/a.c": "int ckt_h(void)\n{\n}\n"})), 1)

    def test_listed(self):
        files = {"base/a.c": "int ckt_g(void)\n{\n}\n", "rpc/a.c": "int ckt_g(void)\n{\n}\n"}
        self.assertEqual(self.complaints(files, ["ckt_g()"]), [])
        self.assertEqual(len(self.complaints(files, ["ckt_g()", "h()"])), 1)


class Functions(unittest.TestCase):
    LONG = "static int f(int a,\n\tint b)\n{\n" + "\ta++;\n" * 61 + "}\n"
    BRANCHED = "int ckt_g(int a)\n{\n\tif (a)" + " &&\n\t\ta" * 20 + "\n\t\treturn 1;\n}\n"

    def complaints(self, text, listed=None):
        return functions.check({"base/a.c": text}, listed or {})[0]

    def test_limits(self):
        self.assertEqual(self.complaints(self.LONG.replace("\ta++;\n", "", 1) + self.BRANCHED.replace(" &&\n\t\ta", "", 1)), [])
        self.assertRegex(" ".join(self.complaints(self.LONG)), "base/a.c: f has 61 lines and 0 branches")
        self.assertRegex(" ".join(self.complaints(self.BRANCHED)), "base/a.c: ckt_g has 22 lines and 21 branches")

    def test_not_counted(self):
        text = self.BRANCHED.replace(" &&\n\t\ta", "", 1)
        self.assertEqual(self.complaints(text.replace("return 1;", 'return s("if (a && b)", \'?\'); /* if, for */')), [])

    def test_names(self):
        for head in ("static __attribute__((always_inline)) int add(int a)", "HANDLER(add)", "struct s *add(void (*call)(int))"):
            self.assertEqual(list(functions.functions(f"{head}\n{{\n\treturn;\n}}\n")), [("add", 1, 0)], head)
        self.assertEqual(list(functions.functions("struct s {\n\tint a;\n};\nint a[] = {\n\t1,\n};\n")), [])

    def test_listed(self):
        self.assertEqual(self.complaints(self.LONG, {("base/a.c", "f"): (61, 0)}), [])
        self.assertRegex(self.complaints(self.LONG, {("base/a.c", "f"): (60, 3)})[0], "divide it")
        self.assertRegex(self.complaints(self.LONG, {("base/a.c", "f"): (70, 0)})[0], "lower its line")
        self.assertRegex(self.complaints("", {("base/a.c", "f"): (61, 0)})[0], "remove its line")

    def test_list(self):
        for size in functions.read_list(os.path.join(lint.HERE, "functions.txt")).values():
            self.assertTrue(size[0] > functions.MAX_LINES or size[1] > functions.MAX_BRANCHES)


class Spdx(unittest.TestCase):
    def test_check(self):
        line = "SPDX-License-Identifier: Apache-2.0"
        self.assertEqual(spdx.check({"a.c": f"/* {line} */\nint a;\n", "b": f"#!/bin/sh\n# {line}\n", "c.md": "# C\n", "d.1": f"'\\\" t\n.\\\" {line}\n"}), [])
        self.assertEqual(len(spdx.check({"a.c": f"int a;\n/* {line} */\n", "b": "#!/bin/sh\n", "c.py": "", "meson_options.txt": "\n"})), 4)

    def test_add(self):
        for path, text in {"a.c": "int a;\n", "b": "#!/bin/sh\n:\n", "c.py": "", "d.1": "'\\\" t\n.TH D\n", "e.ptx": ".version 6.4\n"}.items():
            form = spdx.comment_of(path, text)
            self.assertEqual(spdx.check({path: spdx.with_line(text, form)}), [], path)


class Clocks(unittest.TestCase):
    def test_check(self):
        self.assertEqual(clocks.check({"base/a.c": "clock_gettime(CLOCK_REALTIME, &t);\nckt_cond_wait_until(&c, &l, ns);\n/* as pthread_cond_timedwait */\n"}), [])
        bad = clocks.check({"base/a.c": "int x;\n\tpthread_cond_timedwait(&c, &l, &t);\n", "base/b.c": "if (sem_timedwait (s, &t))"})
        self.assertEqual([line.split(" ")[0] for line in bad], ["base/a.c:2:", "base/b.c:1:"])


class Subjects(unittest.TestCase):
    def test_good(self):
        for subject in ("rpc: bound the replies kept for a client", "client/cuda, softgpu: share pointer attributes", "README: say what it is",
                        "server/worker: pass descriptors on", "tests/gpu: need two GPUs", "Format the whole tree"):
            self.assertIsNone(subjects.wrong(subject), subject)

    def test_bad(self):
        for subject in ("rpc: bounds the replies", "rpc: bounded the replies", "rpc: bounding replies", "rpc: the replies are bounded", "no room",
                        "rpc: " + "x" * 70):
            self.assertIsNotNone(subjects.wrong(subject), subject)


class Tools(unittest.TestCase):
    def test_said(self):
        self.assertEqual(lint.said("false"), ["false: exit status 1"])
        self.assertEqual(lint.those("error:", ["a", "x error: y"]), ["x error: y"])
        self.assertEqual(lint.those("error:", ["crashed"]), ["crashed"])
        self.assertEqual(lint.said("sh", "-c", "echo wrong; exit 1"), ["wrong"])
        self.assertEqual(lint.said("sh", "-c", "echo fine"), [])


if __name__ == "__main__":
    unittest.main()
