# SPDX-License-Identifier: Apache-2.0
"""Tables of libraries that are served at their own API: what the grammar says, every mistake by its line, and what is made of a small header.

Set: CKT_GENERATOR, the directory rpc/gen.
"""

import dataclasses
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["CKT_GENERATOR"])

import emit_forwarded  # noqa: E402
import emit_roundtrip  # noqa: E402
import emit_x  # noqa: E402
import forwarded  # noqa: E402
import headers as headers_module  # noqa: E402
import library  # noqa: E402
import table  # noqa: E402

BOX_H = """
typedef enum { BOX_OK = 0 } boxStatus_t;
typedef enum { BOX_N, BOX_T } boxOperation_t;
typedef struct boxHandle_st *boxHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef int boxNumber_t;
typedef struct boxOther_st *boxOther_t;
typedef struct { double re, im; } boxComplex;
typedef struct { double all[3]; } boxWide;
#ifdef __cplusplus
extern "C" {
boxStatus_t boxHalf(boxHandle_t handle, const unsigned short *alpha);
#endif
boxStatus_t boxCreate(boxHandle_t *handle);
boxStatus_t boxSgemm(boxHandle_t handle, boxOperation_t op, int m, const float *alpha, const float *A, float *C);
boxStatus_t boxZgemm(boxHandle_t handle, boxOperation_t op, int m, const boxComplex *alpha, const boxComplex *A, boxComplex *C);
boxStatus_t boxDot(boxHandle_t handle, long n, const float *x, float *result);
boxStatus_t boxEx(boxHandle_t handle, int type, const void *alpha);
boxStatus_t boxWideScalar(boxHandle_t handle, const boxWide *alpha);
boxStatus_t boxGroup(boxHandle_t handle, const int sizes[], const void *scales, int count, const float *const A[]);
boxStatus_t boxFactor(boxHandle_t handle, int *info);
boxStatus_t boxRun(boxHandle_t handle, cudaStream_t stream, const char *name);
boxStatus_t boxNoHandle(const float *alpha);
boxStatus_t boxStrange(boxOther_t other);
boxStatus_t boxUnder(boxHandle_t handle, int result_);
boxStatus_t boxNew(int a);
boxStatus_t boxPut(boxNumber_t number, float *data);
boxStatus_t boxPlan(boxNumber_t number, int rank, int *n, int *embed, long *size);
const char *boxText(void);
#ifdef __cplusplus
}
#endif
"""

BOX = library.forwarded(
    "box", 99, prefix="box", soname="libbox.so", includes=("box.h",), result="boxStatus_t",
    handles={"boxHandle_t": "handle", "boxNumber_t": "number", "cudaStream_t": "stream"}, title="box", codec_includes=("box.h",), client_header="box/box.h",
    versions=("libbox.so.1",), cplusplus=True)
REST = "local boxText boxCreate\nunsupported box* not here\n"


class Box:
    headers = None

    @classmethod
    def get(cls):
        if not cls.headers:
            cls.directory = tempfile.TemporaryDirectory()
            with open(os.path.join(cls.directory.name, "box.h"), "w", encoding="utf-8") as f:
                f.write(BOX_H)
            library.LIBRARIES["box"] = BOX
            cls.headers = headers_module.Headers(BOX, cls.directory.name)
        return cls.headers


def parse(text):
    Box.get()
    return table.parse("t.api", "library box\n" + text + REST)


def model(text):
    return forwarded.ForwardedModel(parse(text), Box.get())


class Names(unittest.TestCase):
    def test_expand(self):
        self.assertEqual(table.expand("box{S,D}gemm{,_64}"), ["boxSgemm", "boxSgemm_64", "boxDgemm", "boxDgemm_64"])
        self.assertEqual(table.expand("plain"), ["plain"])
        self.assertIsNone(table.expand("box{S,D"))

    def test_numbers_follow(self):
        made = parse("device A C\nscalar alpha\n10 box{S,Z}gemm batched\n")
        self.assertEqual([(p.number, p.name) for p in made.procedures], [(10, "boxSgemm"), (11, "boxZgemm")])

    def test_header_in_cplusplus(self):
        self.assertIn("boxHalf", Box.get().functions)


class Mistakes(unittest.TestCase):
    def fails(self, text, line, message, make=model):
        with self.assertRaises(table.TableError) as caught:
            make(text)
        self.assertIn(message, caught.exception.message)
        self.assertEqual(caught.exception.line, line + 1, caught.exception.message)

    def test_procedures(self):
        self.fails("1 box{S,D batched\n", 1, "brackets that do not match")
        self.fails("1 box{S,Z}gemm batched\n2 boxDot batched\n", 2, "procedure number 2 of boxDot is boxZgemm's")
        self.fails("2048 boxDot batched\n", 1, "is not in 1..2047")
        self.fails("1 boxMissing batched\n", 1, "boxMissing is not in box.h")
        self.fails("1 boxStrange batched\n", 1, "a handle that box's entry does not know")
        self.fails("1 boxUnder batched\n", 1, "calls its own variables")
        self.fails("1 boxFactor batched\n\tout info\n", 1, "has results and cannot be batched")
        self.fails("1 boxDot waits\n\tdevice x\n\tresult result\n", 1, "gives scalars: it is batched")
        self.fails("1 boxNoHandle batched\n\tscalar alpha\n", 1, "no handle whose pointer mode")

    def test_pointers(self):
        self.fails("1 boxDot batched\n\tdevice x\n", 1, "'float *result' is a pointer: say")
        self.fails("1 boxDot batched\n\tdevice x y\n\tresult result\n", 2, "boxDot has no parameter y")
        self.fails("1 boxDot batched\n\tdevice n\n\tdevice x\n\tresult result\n", 2, "n of boxDot is a long and needs no line")
        self.fails("1 boxDot batched\n\tdevice x\n\tdevice x\n\tresult result\n", 3, "says already what x is")
        self.fails("1 boxDot batched\n\tresult x\n\tresult result\n", 2, "points to const: it cannot be result")
        self.fails("1 boxEx batched\n\tscalar alpha\n", 2, "say how many bytes: scalar alpha BY SIZE")
        self.fails("1 boxEx batched\n\tscalar alpha BY\n", 2, "BY SIZE: an expression")
        self.fails("1 boxWideScalar batched\n\tscalar alpha\n", 2, "has 24 bytes, and 16 at most: scalar alpha MOST")
        self.fails("1 boxRun batched\n\tstring name\n", 2, "string NAME MAX expected")
        self.fails("1 boxRun batched\n\tstring name 0\n", 2, "is not a positive number")
        self.fails("1 boxGroup batched\n\tdevice A\n\tin sizes counts 8\n\tin scales count 8 BY 4\n", 3, "its count 'counts' is no integer")
        self.fails("1 boxGroup batched\n\tdevice A\n\tin sizes A 8\n\tin scales count 8 BY 4\n", 3, "its count 'A' is no integer")
        self.fails("1 boxGroup batched\n\tdevice A\n\tin sizes count\n", 3, "in NAME COUNT MAX")
        self.fails("1 boxDot batched\n\tinout x\n", 2, "unknown line 'inout'")

    def test_effects(self):
        self.fails("1 box_set hand batched\n\targ u32 value\n\tsets\n", 1, "its first argument is the object's id")
        self.fails("1 box_set hand batched\n\targ object handle\n\tsets\n\tdestroys\n", 4, "box_set sets already")
        self.fails("1 box_set hand batched\n\targ object handle\n\tsets which\n", 1, "which is none of its arguments")
        self.fails("1 box_set hand batched\n\targ object handle\n\targ opaque data 8\n\targ u32 key\n\tsets key\n", 1, "no fixed place")
        self.fails("1 box_set hand batched\n\targ object handle\n\targ u32 key\n\tseals key\n", 4, "sets [FIELD], seals or stateless expected")
        self.fails("1 box_set hand batched\n\targ object handle\n\tcreates more\n", 3, "creates, destroys, sets [FIELD]")

    def test_learns(self):
        self.fails("learns\n1 boxDot batched\n", 1, "learns TYPE ... expected")
        self.fails("device x\nlearns boxOperation_t\n1 boxDot batched\n\tresult result\n", 2, "no batched procedure has a parameter of type boxOperation_t")
        self.fails("1 boxDot batched\nlearns boxOperation_t\n", 2, "stand before the first procedure")

    def test_manners(self):
        self.fails("1 boxPut waits\n\tdevice data\n\texecutes\n", 3, "what executes is batched")
        self.fails("1 boxPut batched\n\tdevice data\n\tbeside\n", 3, "what runs beside the executor waits")
        self.fails("1 boxPut batched\n\tdevice data\n\texecutes\n\texecutes\n", 4, "stands alone, once")
        self.fails("1 boxPut batched\n\tdevice data\n\texecutes now\n", 3, "stands alone, once")
        self.fails("1 boxNew batched\n\texecutes\n", 1, "has no object whose stream travels")
        self.fails("1 boxNew waits\n\tbeside\n", 1, "it needs an object")
        self.fails("1 boxPut batched\n\tdevice data\n\tthen done()\n", 3, "generated and waits")
        self.fails("1 boxFactor waits\n\tout info\n\tthen\n", 3, "then EXPRESSION expected")
        self.fails("1 boxPlan waits\n\tout size\n\tin n rank 3\n\toptional embed\n", 4, "optional NAME COUNT MAX")
        self.fails("1 boxFactor waits\n\tout info AT\n", 2, "AT PLACE: an expression in C")

    def test_checks(self):
        self.fails("check m\n1 boxDot batched\n", 1, "check NAME|TYPE EXPRESSION expected")
        self.fails("check m m >= 0\n1 boxDot batched\n", 1, "with `it` for the parameter")
        self.fails("1 boxDot batched\ncheck m it >= 0\n", 2, "stand before the first procedure")
        self.fails("1 boxDot batched\n\tcheck\n", 2, "check EXPRESSION expected")
        self.fails("device q\n1 boxFactor waits\n\tout info\n", 1, "no procedure has a pointer q")

    def test_rules(self):
        self.fails("local boxMissing\n", 1, "boxMissing is not in box.h")
        self.fails("undeclared boxNew not in the header\n", 1, "list it as unsupported")
        self.fails("newer box* later\n", 1, "newer names are written out")
        self.fails("1 boxDot batched\n\tdevice x\n\tresult result\nlegacy boxNew AS boxDot\n", 4, "boxNew and boxDot do not fit")
        self.fails("legacy boxNew\n", 1, "stands on boxNew_v2, which is not in box.h")


class Made(unittest.TestCase):
    TEXT = ("device A C x\nscalar alpha\ncheck m it >= 0\ncheck boxOperation_t (unsigned)it <= BOX_T\n"
            "1 box_set hand batched\n\targ object handle\n\targ u32 which\n\targ u64 value\n\tsets which\n"
            "10 box{S,Z}gemm batched\n\tcheck m != 13\n20 boxDot batched\n\tresult result\n21 boxEx batched\n\tscalar alpha BY 4 * type\n"
            "22 boxGroup batched\n\tin sizes count 8\n\tin scales count 8 BY 2 * 4\n23 boxFactor waits numbered\n\tout info\n24 boxRun batched\n\tstring name 32\n"
            "25 boxWideScalar batched\n\tscalar alpha 24\n")

    def setUp(self):
        self.model = model(self.TEXT)

    def procedure(self, name):
        return next(p for p in self.model.procedures if p.name == name)

    def test_seals(self):
        sealing = emit_forwarded.dispatch(model("1 box_make hand waits numbered\n\targ object handle\n\tseals\n"))
        self.assertIn("CKT_PROC_NUMBERED | CKT_PROC_SETS | CKT_PROC_SEALS | CKT_PROC_OBJECT", sealing)
        self.assertNotIn("CKT_PROC_SEALS", emit_forwarded.dispatch(self.model))

    def fields(self, message):
        return [(f.name, f.type.fixed_size()) for f in message.fields]

    def test_messages(self):
        self.assertEqual(self.fields(self.procedure("boxSgemm").args),
                         [("handle", 8), ("pointer_mode", 4), ("op", 4), ("m", 4), ("alpha", 16), ("A", 8), ("C", 8)])
        dot = self.procedure("boxDot")
        self.assertEqual(self.fields(dot.args), [("handle", 8), ("pointer_mode", 4), ("n", 8), ("x", 8), ("result", 8)])
        self.assertEqual([(f.name, f.type.limit) for f in dot.results.fields], [("values", 32)])
        self.assertEqual(self.fields(self.procedure("boxFactor").results), [("status", 4), ("info", 4)])
        group = {f.name: f.type for f in self.procedure("boxGroup").args.fields}
        self.assertEqual((group["sizes"].limit, group["scales"].limit), (32, 128))
        self.assertEqual(self.fields(self.procedure("boxWideScalar").args)[-1], ("alpha", 24))
        emit_x.specification(self.model)

    def test_second_names(self):
        made = model("newer boxNew boxLater of later releases\n")
        self.assertNotIn("alias", emit_forwarded.refused(made))
        made.library = dataclasses.replace(made.library, doubled="p")
        text, names = emit_forwarded.refused(made), emit_forwarded.exported(made)
        for name in ("boxNew", "boxLater"):
            self.assertIn(f"EXPORT int {name}(void)", text)
            self.assertIn(f'EXPORT int p{name}(void) __attribute__((alias("{name}")));', text)
        self.assertEqual({n for n in names if n.startswith("p")}, {f"p{n}" for n in names if not n.startswith("p")})

    def test_stubs(self):
        text = emit_forwarded.stubs(self.model)
        gemm = text[text.index("boxSgemm("):text.index("boxZgemm(")]
        for part in ("!(m >= 0)", "!((unsigned)op <= BOX_T)", "!(m != 13)", "CKT_CALL_F_BATCHED", "client_->queue_status"):
            self.assertIn(part, gemm)
        self.assertIn("own_handle->pointer_mode ? CKT_CALL_F_BATCHED : CKT_CALL_F_NUMBERED", text)
        self.assertIn("4 * type", text)

    def test_learns(self):
        """A batched call with a parameter of the type is waited for until its content is known; one that gives values is left alone."""
        made = model("device A C x\nscalar alpha\nlearns boxOperation_t\n10 boxSgemm batched\n20 boxDot batched\n\tresult result\n")
        self.assertEqual({p.name: p.learns for p in made.procedures}, {"boxSgemm": True, "boxDot": False})
        text = emit_forwarded.stubs(made)
        for part in ("(uint64_t)args_.op,", "ckt_lib_number((uint64_t)args_.m)", "ckt_lib_number((uint64_t)args_.A)",
                     "taken_ ? CKT_CALL_F_BATCHED : CKT_CALL_F_NUMBERED", "ckt_lib_learn(client_, &call_, content_, &status_)"):
            self.assertIn(part, text)
        self.assertIn("test_learned(boxSgemm(", emit_roundtrip.tests(made))

    def test_dispatch(self):
        text = emit_forwarded.dispatch(self.model)
        self.assertIn('[1] = {"box_set", ckt_worker_box_set, CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_SETS | CKT_PROC_OBJECT, 0, 8, 4},', text)
        self.assertIn('[10] = {"boxSgemm", handle_boxSgemm, CKT_PROC_BATCHED | CKT_PROC_NUMBERED | CKT_PROC_OBJECT},', text)
        # A peer's arrays are as long as their count.
        self.assertIn("args.scales_len != (uint64_t)args.count * (2 * 4)", text)
        self.assertIn("ckt_library_values_end", text)

    def test_manners(self):
        """Handles that are numbers, streams that travel, arrays that may be NULL, calls beside the executor."""
        made = model("1 boxPlan waits numbered\n\tin n rank 3\n\toptional embed rank 3\n\tout size\n\tseals\n\tbeside\n\tthen kept(own_number)\n"
                     "2 boxPut batched\n\tdevice data\n\texecutes\n3 boxFactor waits\n\tout info\n")
        put = next(p for p in made.procedures if p.name == "boxPut")
        self.assertEqual(self.fields(put.args), [("number", 8), ("stream", 8), ("data", 8)])
        stubs, dispatch, test = emit_forwarded.stubs(made), emit_forwarded.dispatch(made), emit_roundtrip.tests(made)
        for part in ("ckt_box_ready(own_number, &stream_)", "before_work(stream_, at_, 1)", "ckt_box_executed(result_, status_)", "kept(own_number);",
                     ".embed_len = embed ? ", "rank < 1 ||"):
            self.assertIn(part, stubs)
        # What does not execute touches no stream.
        self.assertNotIn("before_work", stubs[stubs.index("boxFactor("):stubs.index("boxPut(")])
        for part in ("(boxNumber_t)(uintptr_t)v_number->real", "ckt_worker_box_use_stream(v_number, stream_)", "ckt_library_long_call(call, &own_->beside)",
                     "own_->has_embed ? (void *)own_->embed : NULL", "args.embed_len && args.embed_len != (uint64_t)args.rank", "ckt_worker_box_out_of_memory"):
            self.assertIn(part, dispatch)
        # What comes afterwards may call again: the reply is given back before.
        self.assertLess(stubs.index("client_->release(&reply_);", stubs.index("boxPlan(")), stubs.index("kept(own_number);"))
        self.assertIn("test_no_object(boxPlan(0, ", test)
        self.assertIn("test_pass == PASS_NULL ? NULL : test_array", test)

    def test_places(self):
        """Where the library writes more than the one element that travels, the handler has a place for it."""
        made = model("1 boxPlan waits numbered\n\tin n rank 3\n\toptional embed rank 3\n\tout size AT ckt_box_sizes(v_number)\n\tseals\n\tbeside\n"
                     "2 boxFactor waits\n\tout info AT ckt_box_infos(v_handle)\n")
        dispatch = emit_forwarded.dispatch(made)
        for part in ("\tlong *size;\n", "own_->size = ckt_box_sizes(v_number);", ".size = *own_->size,", "int *at_info = ckt_box_infos(v_handle);",
                     ".info = *at_info,"):
            self.assertIn(part, dispatch)

    def test_exports(self):
        text = emit_forwarded.version_script("libbox.so.1")(self.model)
        self.assertTrue(text.split("*/\n", 1)[1].startswith("libbox.so.1 {\nglobal:\n"))
        for name in Box.get().functions:
            self.assertIn(f"\t{name};\n", text)
        refused = emit_forwarded.refused(self.model)
        self.assertIn("EXPORT int boxNew(void)", refused)
        self.assertNotIn("boxSgemm", refused)

    def test_coverage(self):
        rows = {row["name"]: row for row in json.loads(emit_forwarded.coverage(self.model))["functions"]}
        self.assertEqual(rows["boxSgemm"]["class"], "batched")
        self.assertEqual(rows["boxNew"], {"name": "boxNew", "class": "unsupported", "reason": "not here"})
        self.assertEqual(rows["boxCreate"]["class"], "local")
        by_hand = model("1 boxRun hand batched\n\targ object handle\n2 boxFactor hand waits\n\targ object handle\n\tres i32 info\n")
        rows = {row["name"]: row["class"] for row in json.loads(emit_forwarded.coverage(by_hand))["functions"]}
        self.assertEqual((rows["boxRun"], rows["boxFactor"]), ("batched", "waits"))

    def test_newer(self):
        """What a later release exports is refused, whether the headers have it or not."""
        later = model("newer boxNew boxLater of a later release\n")
        self.assertEqual(later.undeclared, {"boxLater": "of a later release"})
        self.assertEqual([(e.kind, e.reason) for e in later.entries if e.name == "boxNew"], [("unsupported", "of a later release")])
        for name in ("boxNew", "boxLater"):
            self.assertIn(f"EXPORT int {name}(void)", emit_forwarded.refused(later))
            self.assertIn(f"\t{name};\n", emit_forwarded.version_script("libbox.so.1")(later))

    def test_roundtrip(self):
        text = emit_roundtrip.tests(self.model)
        for p in self.model.generated():
            self.assertIn(f"static void test_{p.name}(void)", text)
            self.assertIn(f"ckt_box.{p.name} = double_{p.name};", text)


if __name__ == "__main__":
    unittest.main()
