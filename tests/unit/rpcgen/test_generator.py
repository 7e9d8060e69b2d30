# SPDX-License-Identifier: Apache-2.0
"""The generator: what it refuses and how it says so, what it makes of small headers, and that nothing of the real ones is lost.

Set: CKT_GENERATOR, the directory rpc/gen; CKT_CUDA_INCLUDE; CKT_TABLE, the real table; CKT_LIBCUDA_STUB (optional), NVIDIA's libcuda stub.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["CKT_GENERATOR"])

import emit_client  # noqa: E402
import emit_codec  # noqa: E402
import emit_coverage  # noqa: E402
import emit_server  # noqa: E402
import emit_x  # noqa: E402
import generate  # noqa: E402
import headers as headers_module  # noqa: E402
import library  # noqa: E402
import model as model_module  # noqa: E402
import table  # noqa: E402
import typedefs  # noqa: E402

CUDA_H = """
#define CUDA_VERSION 13000
#define CUDAAPI
typedef enum { CUDA_SUCCESS = 0 } CUresult;
typedef struct CUstream_st *CUstream;
typedef struct CUcontext_st *CUcontext;
typedef struct CUgraph_st *CUgraph;
typedef int CUdevice;
typedef enum { FIRST } CUkind;
typedef struct { CUkind kind; int id; char name[6]; long long deep[2]; } CUplain;
typedef struct { CUplain inner[2]; double weight; } CUnested;
typedef struct { int which; union { int i; float f; } value; } CUwithUnion;
typedef struct { void *p; } CUwithPointer;
typedef struct { unsigned a:1; } CUwithBits;
CUresult CUDAAPI cuInit(unsigned int flags);
CUresult CUDAAPI cuGet(unsigned long *pvalue, CUkind kind);
CUresult CUDAAPI cuPlain(CUplain plain, const CUnested *nested);
CUresult CUDAAPI cuUnion(CUwithUnion u);
CUresult CUDAAPI cuPointerInside(CUwithPointer *p);
CUresult CUDAAPI cuBits(CUwithBits *b);
CUresult CUDAAPI cuGraphic(CUgraph graph);
CUresult CUDAAPI cuOnDevice(CUdevice device);
CUresult CUDAAPI cuWrite(CUstream hStream, unsigned int value);
CUresult CUDAAPI cuWrite_ptsz(CUstream hStream, unsigned int value);
CUresult CUDAAPI cuCopy(void *to, const void *from, unsigned long count);
CUresult CUDAAPI cuCopy_ptds(void *to, const void *from, unsigned long count);
CUresult CUDAAPI cuCopyAsync(void *to, const void *from, unsigned long count, CUstream hStream);
CUresult CUDAAPI cuNamed(const char *name);
CUresult CUDAAPI cuOld(int a);
CUresult CUDAAPI cuOld_v2(int a);
CUresult CUDAAPI cuOther(long a);
CUresult CUDAAPI cuClash(int result);
const char *cuText(void);
"""

EVERYTHING = "local cuInit cuText\nunsupported cu* not here\n"


def parse(text):
    """The lines of the text count from the one behind the library's."""
    return table.parse("t.api", "library cuda\n" + text)


class Fake:
    """A directory with a cuda.h of ours; the headers are read once."""
    directory = None
    headers = None

    @classmethod
    def make(cls, text=CUDA_H):
        directory = tempfile.TemporaryDirectory()
        for name, content in (("cuda.h", text), ("cudaProfiler.h", ""), ("cudaTypedefs.h", ""), ("cudaProfilerTypedefs.h", "")):
            with open(os.path.join(directory.name, name), "w", encoding="utf-8") as f:
                f.write(content)
        return directory

    @classmethod
    def model(cls, text):
        if cls.headers is None:
            cls.directory = cls.make()
            cls.headers = headers_module.Headers(library.CUDA, cls.directory.name)
        return model_module.Model(parse(text), cls.headers)


class Refusals(unittest.TestCase):
    def refused(self, text, line, *words, make=parse):
        with self.assertRaises(table.TableError) as caught:
            make(text)
        message = str(caught.exception)
        self.assertTrue(message.startswith(f"t.api:{line + 1}: "), message)
        for word in words:
            self.assertIn(word, message)

    def test_library(self):
        for text in ("local cuInit\n", "library\n", "library opengl\n", "# none\n\n\targ u32 x\n"):
            with self.assertRaisesRegex(table.TableError, r"^t\.api:\d: a table begins with the line: library NAME; there are: cuda nvml( \w+)*$"):
                table.parse("t.api", text)

    def test_duplicate_number(self):
        self.refused("1 a hand waits\n\n1 b hand waits\n", 3, "number 1 of b", "a's (line 2)", "only appended")

    def test_duplicate_name(self):
        self.refused("1 a hand waits\n2 a hand waits\n", 2, "procedure a stands already on line 2")

    def test_wrong_class(self):
        self.refused("1 a hand sometimes\n", 1, "class of a", "not sometimes")
        self.refused("1 a hand\n", 1, "class of a", "not nothing")
        self.refused("1 a waits\n", 1, "a is no function of cuda.h", "class hand")
        self.refused("1 cuInit hand waits\n", 1, "lower-case name")

    def test_wrong_flag(self):
        self.refused("1 a hand waits often\n", 1, "unknown flag 'often'")
        self.refused("1 a hand batched numbered\n", 1, "leave the flag out")

    def test_wrong_number(self):
        self.refused("0 a hand waits\n", 1, "not in 1..65535")
        self.refused("70000 a hand waits\n", 1, "not in 1..65535")

    def test_unknown_type(self):
        self.refused("1 a hand waits\n\targ u33 x\n", 2, "unknown type 'u33' of x", "u32")

    def test_bounds(self):
        self.refused("1 a hand waits\n\targ opaque x\n", 2, "opaque x needs its bound")
        self.refused("1 a hand waits\n\targ opaque x 0\n", 2, "'0' is not a positive number")
        self.refused("1 a hand waits\n\targ u32 x 5\n", 2, "takes no bound")
        self.refused("1 a hand waits\n\targ opaque x 99999999\n", 1, "far larger than a record")

    def test_fields(self):
        self.refused("1 a hand waits\n\targ u32 x\n\targ u64 x\n", 3, "has a field x already")
        self.refused("1 a hand batched\n\tres u32 x\n", 1, "batched and so has no results")
        self.refused("1 cuInit waits\n\targ u32 x\n", 2, "takes its types from cuda.h")
        self.refused("1 a hand waits\n\tout x\n", 2, "is hand-written")
        self.refused("\targ u32 x\n", 1, "none before it")
        self.refused("1 a hand waits\n\targs u32 x\n", 2, "unknown line 'args'")

    def test_rules(self):
        self.refused("local cuInit\nlocal cuInit\n", 2, "cuInit stands already on line 2")
        self.refused("1 cuInit waits\nlocal cuInit\n", 2, "cuInit is a procedure already, on line 2")
        self.refused("local cuInit\n1 a hand waits\n", 2, "procedures stand before")
        self.refused("remote cuInit\n", 1, "unknown line 'remote'")
        self.refused("same cuA\n", 1, "same NAME AS NAME")
        self.refused("per_thread cuA\n", 1, "per_thread NAME_ptsz")
        self.refused("unsupported cuA\n", 1, "REASON expected")
        self.refused("undeclared cuA\n", 1, "REASON expected")
        self.refused("undeclared cuA* no\n", 1, "written out")
        self.refused("local cuA since\n", 1, "end of the line")
        self.refused("local cuA cuB cuA\n", 1, "cuA stands twice")
        self.refused("local cu*\n", 1, "not a name for a function")

    def test_missing_annotation(self):
        self.refused("1 cuGet waits\n" + EVERYTHING, 1, "cuGet: parameter 'unsigned long *pvalue' is a pointer", "out pvalue",
                     make=Fake.model)

    def test_wrong_annotation(self):
        self.refused("1 cuGet waits\n\tout pvalue\n\tin kind\n" + EVERYTHING, 3, "kind of cuGet is no pointer", make=Fake.model)
        self.refused("1 cuGet waits\n\tout value\n" + EVERYTHING, 2, "cuGet has no parameter value", make=Fake.model)
        self.refused("1 cuNamed waits\n\tout name\n" + EVERYTHING, 2, "points to const", make=Fake.model)
        self.refused("1 cuGet waits\n\tstring pvalue 4\n" + EVERYTHING, 2, "not a const char *", make=Fake.model)
        self.refused("1 cuCopy waits\n\tin from count 16\n\tout to\n" + EVERYTHING, 3, "cannot translate", make=Fake.model)
        self.refused("1 cuCopy waits\n\tin from size 16\n\tout to\n" + EVERYTHING, 3, make=Fake.model)
        self.refused("1 cuWrite waits\n\tin hStream\n" + EVERYTHING, 2, "travels as an id", make=Fake.model)

    def test_what_cannot_travel(self):
        self.refused("1 cuUnion waits\n" + EVERYTHING, 1, "cuUnion: u.value is a union", "by hand", make=Fake.model)
        self.refused("1 cuPointerInside waits\n\tin p\n" + EVERYTHING, 2, "p.p is a pointer", "by hand", make=Fake.model)
        self.refused("1 cuBits waits\n\tin b\n" + EVERYTHING, 2, "bit-field", make=Fake.model)
        self.refused("1 cuGraphic waits\n" + EVERYTHING, 1, "graph of cuGraphic is a CUgraph", make=Fake.model)
        self.refused("1 cuOnDevice waits\n" + EVERYTHING, 1, "device ordinal", make=Fake.model)
        self.refused("1 cuClash waits\n" + EVERYTHING, 1, "a parameter called result", make=Fake.model)
        self.refused("1 cuText waits\n" + EVERYTHING.replace(" cuText", ""), 1, "gives a const char *", make=Fake.model)

    def test_batched_with_results(self):
        self.refused("1 cuGet batched\n\tout pvalue\n" + EVERYTHING, 1, "has results and cannot be batched", make=Fake.model)

    def test_names_that_are_not_there(self):
        self.refused("1 cuGone waits\n" + EVERYTHING, 1, "cuGone is not in cuda.h 13000", make=Fake.model)
        self.refused("local cuInitt\n", 1, "cuInitt is not in cuda.h 13000", make=Fake.model)
        self.refused("same cuOld AS cuGone\nlocal cuOld_v2\n", 1, "cuGone is not in cuda.h", make=Fake.model)

    def test_aliases(self):
        self.refused("same cuOther AS cuOld_v2\nlocal cuOld_v2\n", 1, "different parameters", make=Fake.model)
        self.refused("same cuOld AS cuOld_v2\n" + EVERYTHING, 1, "which is unsupported", make=Fake.model)
        self.refused("per_thread cuWrite_ptsz AS cuOld\nlocal cuOld\n", 1, "exactly one stream", make=Fake.model)

    def test_unsupported_must_give_a_result(self):
        model = Fake.model("unsupported cu* no\n")
        with self.assertRaisesRegex(table.TableError, "cuText gives a const char"):
            emit_client.stubs(model)


class Making(unittest.TestCase):
    def test_kinds(self):
        model = Fake.model("1 cuGet waits\n\tout pvalue\nlocal cuInit cuCopyAsync cuOld_v2 cuWrite\nsame cuOld AS cuOld_v2\n"
                           "per_thread cuWrite_ptsz\nper_thread cuCopy_ptds AS cuCopyAsync sync\nunsupported cuGraphic graphs: later\n"
                           "unsupported cuP* cuB* not written yet\n")
        kinds = {e.name: e.kind for e in model.entries}
        self.assertEqual(kinds["cuGet"], "waits")
        self.assertEqual(kinds["cuOld"], "same")
        self.assertEqual(kinds["cuWrite_ptsz"], "per_thread")
        self.assertEqual(kinds["cuBits"], "unsupported")
        self.assertEqual([e.name for e in model.unknown()], ["cuUnion", "cuOnDevice", "cuCopy", "cuNamed", "cuOther", "cuClash", "cuText"])
        self.assertEqual(next(e.reason for e in model.entries if e.name == "cuGraphic"), "graphs: later")

    def test_full_name_beats_pattern_and_first_pattern_wins(self):
        model = Fake.model("unsupported cuOld* first\nunsupported cu* second\nunsupported cuOld_v2 exact\n")
        reasons = {e.name: e.reason for e in model.entries}
        self.assertEqual((reasons["cuOld"], reasons["cuOld_v2"], reasons["cuInit"]), ("first", "exact", "second"))

    def test_undeclared(self):
        model = Fake.model("undeclared cuShown graphics\nlocal cuInit cuText\nunsupported cu* no\n")
        self.assertEqual(model.undeclared, {"cuShown": "graphics"})
        self.assertIn("\tcuShown;\n", emit_client.version_script(model))
        self.assertIn('ckt_call_unsupported("cuShown", &once)', emit_client.stubs(model))
        rows = {row["name"]: row for row in json.loads(emit_coverage.data(model))["functions"]}
        self.assertEqual(rows["cuShown"], {"name": "cuShown", "class": "unsupported", "reason": "graphics"})
        with self.assertRaisesRegex(table.TableError, "cuInit is in cuda.h 13000: list it as unsupported"):
            Fake.model("undeclared cuInit graphics\nlocal cuText\nunsupported cu* no\n")

    def test_since(self):
        model = Fake.model("local cuTomorrow since 13010\n" + EVERYTHING)
        self.assertNotIn("cuTomorrow", [e.name for e in model.entries])
        with self.assertRaises(table.TableError):
            Fake.model("local cuYesterday since 12000\n" + EVERYTHING)

    def test_structs_are_coded_member_by_member(self):
        model = Fake.model("1 cuPlain waits\n\tin nested\n" + EVERYTHING)
        args = model.procedures[0].args
        self.assertEqual(args.fixed_size(), 4 + 4 + 8 + 16 + 2 * (4 + 4 + 8 + 16) + 8)
        text = emit_x.specification(model)
        self.assertIn("struct ckt_x_CUnested {\n\tckt_x_CUplain inner[2];\n\tdouble weight;\n};", text)
        self.assertIn("struct ckt_x_CUplain {\n\tint kind;\n\tint id;\n\topaque name[6];\n\thyper deep[2];\n};", text)
        self.assertLess(text.index("struct ckt_x_CUplain {"), text.index("struct ckt_x_CUnested {"))

    def test_reply_in_rpc_language(self):
        text = emit_x.specification(Fake.model("1 cuGet waits\n\tout pvalue\n2 one hand batched\n3 two hand waits\n\targ string version 4\n"
                                               + EVERYTHING))
        self.assertIn("union ckt_x_cuGet_reply switch (int result) {\ncase 0:\n\tckt_x_cuGet_res results;\ndefault:\n\tvoid;\n};", text)
        self.assertIn("ckt_x_cuGet_reply CKT_X_CUGET(ckt_x_cuGet_args) = 1;", text)
        self.assertIn("void CKT_X_ONE(void) = 2;", text)
        self.assertIn("int CKT_X_TWO(ckt_x_two_args) = 3;", text)
        self.assertIn("string version_<4>;", text)

    def test_every_function_once(self):
        model = Fake.model("1 cuGet waits\n\tout pvalue\nlocal cuCopyAsync cuWrite\nper_thread cuWrite_ptsz\n"
                           "per_thread cuCopy_ptds AS cuCopyAsync\n" + EVERYTHING)
        stubs = emit_client.stubs(model)
        for entry in model.entries:
            self.assertEqual(len(re.findall(rf"^\S.*\b{entry.name}\(.*\)$", stubs, re.M)), 0 if entry.kind == "local" else 1, entry.name)
            self.assertIn(f"\t{entry.name};\n", emit_client.version_script(model))
            self.assertIn(f"*{entry.name};", emit_server.driver_header(model))

    def test_same_input_same_output(self):
        text = "1 cuGet waits\n\tout pvalue\n2 one hand waits\n\targ u32s words 5\n" + EVERYTHING
        for emit in (emit_codec.header, emit_codec.source, emit_client.stubs, emit_server.dispatch, emit_x.specification,
                     emit_coverage.data):
            self.assertEqual(emit(Fake.model(text)), emit(Fake.model(text)))

    def test_versions_of_entry_points(self):
        with Fake.make("#define CUDA_VERSION 13000\ntypedef int CUresult;\ntypedef struct CUstream_st *CUstream;\n"
                       "CUresult cuA(int x);\nCUresult cuA_v2(long x);\nCUresult cuB(CUstream s);\nCUresult cuB_ptsz(CUstream s);\n"
                       "CUresult cuC(int x);\nCUresult cuC_v2(long x);\nCUresult cuD(char x);\n") as directory:
            with open(os.path.join(directory, "cudaTypedefs.h"), "w", encoding="utf-8") as f:
                f.write("typedef CUresult (*PFN_cuA_v2000)(int x);\ntypedef CUresult (*PFN_cuA_v11030)(long x);\n"
                        "typedef CUresult (*PFN_cuB_v7000)(CUstream s);\ntypedef CUresult (*PFN_cuB_v7000_ptsz)(CUstream s);\n"
                        "typedef CUresult (*PFN_cuC_v9000)(long x);\ntypedef CUresult (*PFN_cuD_v9000)(int other);\n")
            rows = typedefs.entry_points(headers_module.Headers(library.CUDA, directory))
        # cuC has fewer releases than versions: told apart by its types.  cuD's types fit nothing: left out rather than guessed.
        self.assertEqual(rows, [("cuA", 2000, "cuA", "cuA"), ("cuA", 11030, "cuA_v2", "cuA_v2"), ("cuB", 7000, "cuB", "cuB_ptsz"),
                                ("cuC", 9000, "cuC_v2", "cuC_v2")])


class Command(unittest.TestCase):
    def run_generator(self, text, *arguments):
        with Fake.make() as include, tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "t.api")
            with open(path, "w", encoding="utf-8") as f:
                f.write("library cuda\n" + text)
            arguments = [a.replace("OUT", directory) for a in arguments]
            return subprocess.run([sys.executable, os.path.join(os.environ["CKT_GENERATOR"], "generate.py"), "--table", path, "--include",
                                   include, *arguments], capture_output=True, text=True, check=False)

    def test_error_names_the_line(self):
        done = self.run_generator("1 cuGet waits\n", "OUT/cuda_codec.h")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"t\.api:2: cuGet: parameter")
        self.assertNotIn("Traceback", done.stderr)

    def test_unknown_functions(self):
        text = "local cuInit cuText\nunsupported cuO* cuC* cuP* cuB* cuU* cuG* cuW* no\n"
        done = self.run_generator(text)
        self.assertEqual((done.returncode, done.stdout), (0, "CUDA 13.0: 19 functions, 2 implemented, 1 unknown to the table: cuNamed\n"))
        done = self.run_generator(text, "--strict", "OUT/libcuda.map")
        self.assertEqual(done.returncode, 1)
        self.assertIn("  cuNamed\n", done.stderr)

    def test_output_of_another_library(self):
        done = self.run_generator(EVERYTHING, "OUT/nvml_table.c")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing makes nvml_table.c of a table of cuda", done.stderr)

    def test_no_headers(self):
        done = subprocess.run([sys.executable, os.path.join(os.environ["CKT_GENERATOR"], "generate.py"), "--table", os.environ["CKT_TABLE"],
                               "--include", "/nonexistent"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot read /nonexistent/cuda.h", done.stderr)


class AnotherLibrary(unittest.TestCase):
    """toy.py: one entry makes a library known.  What its messages become is proved by test_codec_toy."""
    toy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toy")

    def run_toy(self, table_text, *outputs):
        """(status, what was said, the outputs)"""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "t.api")
            with open(path, "w", encoding="utf-8") as f:
                f.write(table_text)
            paths = [os.path.join(directory, name) for name in outputs]
            done = subprocess.run([sys.executable, os.path.join(self.toy, "toy.py"), os.path.join(os.environ["CKT_GENERATOR"], "generate.py"), "--table",
                                   path, "--include", self.toy, *paths], capture_output=True, text=True, check=False)
            made = []
            for name in paths if done.returncode == 0 else ():
                with open(name, encoding="utf-8") as f:
                    made.append(f.read())
            return done.returncode, done.stdout + done.stderr, made

    def test_made(self):
        with open(os.path.join(self.toy, "toy.api"), encoding="utf-8") as f:
            text = f.read()
        status, said, made = self.run_toy(text, "toy_codec.h", "toy_codec.c", "toy_api.x", "toy.map")
        self.assertEqual((status, said), (0, ""))
        for content in made:
            self.assertNotRegex(content, r"(?i)cuda|CUresult")
        self.assertIn("\tCKT_TOY_PROC_TOYSETMODE = 2,\n", made[0])
        self.assertIn("const char *ckt_toy_proc_name(uint32_t proc)", made[1])
        self.assertIn("program CRICKET_TOY_PROG {", made[2])
        self.assertIn("} = 0x20434bff;", made[2])
        self.assertIn("what libtoy.so.1 exports", made[3])
        self.assertEqual(re.findall(r"^\t(toy\w+);", made[3], re.M), ["toyCreate", "toyGetMode", "toyMultiply", "toySetMode", "toySwap"])

    def test_without_a_version(self):
        status, said, _ = self.run_toy("library toy\n1 toyGone waits\n")
        self.assertEqual(status, 1)
        self.assertIn("t.api:2: toyGone is not in toy.h; an internal procedure", said)
        self.assertEqual(self.run_toy("library toy\nlocal toyCreate\n")[:2], (0, "toy: 5 functions, 1 implemented, 4 unknown to the table: toySetMode "
                                                                              "toyGetMode toyMultiply toySwap\n"))
        status, said, _ = self.run_toy("library toy\nlocal toyCreate since 2\n")
        self.assertEqual(status, 1)
        self.assertIn("'2' is not a name for a function", said)


class RealHeaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = generate.load(os.environ["CKT_TABLE"], os.environ["CKT_CUDA_INCLUDE"])

    def test_numbers_and_names_agree_with_the_header(self):
        self.assertGreater(len(self.model.entries), 600)
        names = [e.name for e in self.model.entries]
        self.assertEqual(len(names), len(set(names)))

    def test_stub_library_exports_the_same(self):
        stub = os.environ.get("CKT_LIBCUDA_STUB", "")
        if not os.path.exists(stub):
            self.skipTest("no libcuda stub in this toolkit")
        lines = subprocess.run(["nm", "-D", "--defined-only", stub], check=True, capture_output=True, text=True).stdout.splitlines()
        exported = {line.split()[-1] for line in lines if " T " in line}
        # Not every toolkit's holds what is about graphics and the debugger.
        self.assertEqual({e.name for e in self.model.entries} - exported, set())
        self.assertEqual(exported - {e.name for e in self.model.entries} - set(self.model.undeclared), set())

    def test_every_entry_point_has_a_release(self):
        rows = self.model.entry_points()
        reached = {symbol for row in rows for symbol in row[2:]}
        # A synchronous copy's _ptds and an asynchronous one's _ptsz are reached by flag; so everything is.
        self.assertEqual({e.name for e in self.model.entries} - reached, set())
        self.assertIn(("cuMemAlloc", 3020, "cuMemAlloc_v2", "cuMemAlloc_v2"), rows)
        self.assertIn(("cuGetProcAddress", 12000, "cuGetProcAddress_v2", "cuGetProcAddress_v2"), rows)
        self.assertIn(("cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"), rows)
        self.assertIn(("cuStreamQuery", 2000, "cuStreamQuery", "cuStreamQuery_ptsz"), rows)

    def test_coverage_data(self):
        data = json.loads(emit_coverage.data(self.model))
        self.assertEqual([f["name"] for f in data["functions"]], sorted([e.name for e in self.model.entries] + list(self.model.undeclared)))
        for f in data["functions"]:
            self.assertTrue(f["class"] != "unsupported" or f["reason"], f["name"])


if __name__ == "__main__":
    unittest.main()
